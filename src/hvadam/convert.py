"""Move a state between torch and JAX, through plain dictionaries of NumPy arrays.

Neither framework is imported with this module, and they never meet: ``from_torch`` and ``to_torch``
use the methods of the tensors they are given, ``from_jax`` and ``to_jax`` import JAX when called.

The form in between, as NumPy and JSON-like values, for a hidden vector over all parameters::

    {"step": 120,
     "params": {"layer.weight": {"exp_avg": m, "hidden": v, "exp_avg_var": s}, ...},
     "scalars": {"steps_since_restart": 31, "alignment_ema": 0.03, ...}}

Under ``scope="tensor"`` each parameter has its "scalars" beside its arrays. Names and layouts are
yours to change in between: a transposed weight has its three arrays transposed. What no optimizer
can have left behind is refused, by name and before anything changes. An infinite "exp_avg_var" is
not of that kind: a gradient whose square overflowed leaves it.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np

from hvadam.core.scalars import FIELDS, INITIAL

ARRAYS = ("exp_avg", "hidden", "exp_avg_var")
SCALARS = tuple(name for name in FIELDS if name != "step")

# What a number can be: the least, the most, and the rule in words. JAX counts in 32 bits; an
# average of cosines may be rounded to more than 1.
MOST, ROUNDED, LARGEST = 2**31 - 1, 1 + 1e-6, sys.float_info.max
RANGES: dict[str, tuple[float, float, str]] = {
    "step": (0, MOST, "a whole number in [0, 2**31)"),
    "steps_since_restart": (-1, MOST, "a whole number in [-1, 2**31)"),
    "restarts": (0, MOST, "a whole number in [0, 2**31)"),
    "holds": (0, MOST, "a whole number in [0, 2**31)"),
    "alignment_ema": (0, ROUNDED, "in [0, 1]"),
    "alignment": (0, ROUNDED, "in [0, 1]"),
    "mix": (-LARGEST, LARGEST, "a finite number"),
    "hidden_gain": (0, LARGEST, "a finite number, at least 0"),
    "exp_avg_norm": (0, LARGEST, "a finite number, at least 0"),
    "hidden_norm": (0, LARGEST, "a finite number, at least 0"),
}
WHOLE = ("step", "steps_since_restart", "restarts", "holds")

State = dict[str, Any]


def from_torch(optimizer: Any) -> State:
    """Return the state of a ``hvadam.HVAdam`` as NumPy arrays by the names of its parameters.

    Without names, parameters are called "0", "1", ... in their order.

    Raises:
        ValueError: The state has what JAX's cannot hold: low-bit state, a hidden vector per group,
            or parameters that took different numbers of steps. Or it is no HVAdam's.
    """
    groups = _torch_groups(optimizer)
    options = groups[0]
    if options["state_dtype"] != "float32":
        raise ValueError(
            f'hvadam.convert: a state with state_dtype="{options["state_dtype"]}" is torch\'s '
            'alone; load it into an optimizer with state_dtype="float32" first.'
        )
    scope = _torch_scope(groups)
    named = list(_torch_parameters(groups))
    steps = {int(optimizer.state[p]["step"]) if optimizer.state.get(p) else 0 for _, p in named}
    if len(steps) > 1:
        raise ValueError(
            "hvadam.convert: all parameters must have taken the same number of steps, got from "
            f"{min(steps)} to {max(steps)}: JAX counts once for all. Give every parameter a "
            "gradient at every step."
        )
    params: dict[str, Any] = {}
    for name, p in named:
        own = optimizer.state.get(p)
        made = {key: own[key] if own else _widened(p).new_zeros(p.shape) for key in ARRAYS}
        params[name] = {key: x.detach().cpu().numpy().copy() for key, x in made.items()}
        if scope == "tensor":
            params[name]["scalars"] = _scalars(own["scalars"].tolist() if own else INITIAL)
    state: State = {"step": steps.pop() if steps else 0, "params": params}
    if scope == "global":
        state["scalars"] = _scalars(options["scalars"].tolist())
    return state


def to_torch(state: State, optimizer: Any) -> None:
    """Load a state of NumPy arrays into a ``hvadam.HVAdam``, which keeps its own options.

    Raises:
        ValueError: Names, shapes or the scope do not fit the optimizer, or a number is none that an
            optimizer can have left.
    """
    groups = _torch_groups(optimizer)
    scope = _torch_scope(groups)
    named = dict(_torch_parameters(groups))
    _check(state, {name: (tuple(p.shape), _dtype(p)) for name, p in named.items()}, scope)
    loaded = optimizer.state_dict()
    like = next(iter(named.values()))
    indices = [index for group in loaded["param_groups"] for index in group["params"]]
    loaded["state"] = {}
    for index, (name, p) in zip(indices, named.items(), strict=True):
        arrays = state["params"][name]
        own = {key: _widened(p).new_tensor(np.asarray(arrays[key])) for key in ARRAYS}
        own["step"] = _widened(p).new_tensor(float(state["step"]))
        if scope == "tensor":
            own["scalars"] = _torch_scalars(state["step"], arrays["scalars"], p)
        loaded["state"][index] = own
    for group in loaded["param_groups"]:
        if scope == "global":
            group["scalars"] = _torch_scalars(state["step"], state["scalars"], like)
    optimizer.load_state_dict(loaded)


def from_jax(opt_state: Any) -> State:
    """Return the state of ``hvadam.jax`` as NumPy arrays by the paths of the leaves.

    Args:
        opt_state: An ``HVAdamState``, or any Optax state that holds exactly one.

    Raises:
        ValueError: It holds none, or several.
    """
    own = _find(opt_state)
    trees = {key: _leaves(getattr(own, key)) for key in ARRAYS}
    names = list(trees["exp_avg"])
    params: dict[str, Any] = {
        name: {key: np.array(trees[key][name]) for key in ARRAYS} for name in names
    }
    state: State = {"step": int(own.step), "params": params}
    values = {name: np.asarray(getattr(own.scalars, name)) for name in SCALARS}
    if own.scalars.mix.ndim == 0:
        state["scalars"] = {name: value.item() for name, value in values.items()}
    else:
        for i, name in enumerate(names):
            params[name]["scalars"] = {key: value[i].item() for key, value in values.items()}
    return state


def to_jax(state: State, opt_state: Any) -> Any:
    """Return an Optax state that goes on from NumPy arrays, from one that ``init`` made.

    Args:
        state: The arrays.
        opt_state: Whose structure, dtypes and shardings to take; it must hold one ``HVAdamState``.
            The step count of a schedule in it is Optax's and stays.

    Raises:
        ValueError: Names, shapes or the scope do not fit, or a number is none that an optimizer can
            have left.
    """
    import jax
    import jax.numpy as jnp

    own = _find(opt_state)
    scope = "global" if own.scalars.mix.ndim == 0 else "tensor"
    leaves = _leaves(own.exp_avg)
    _check(state, {name: (x.shape, np.dtype(x.dtype)) for name, x in leaves.items()}, scope)

    def placed(value: Any, like: Any) -> Any:
        made = jnp.asarray(np.asarray(value), like.dtype)
        return jax.device_put(made, like.sharding) if like.committed else made

    def tree(key: str) -> Any:
        old, structure = jax.tree.flatten(getattr(own, key))
        new = [state["params"][name][key] for name in leaves]
        return structure.unflatten(placed(x, like) for x, like in zip(new, old, strict=True))

    def scalar(name: str) -> Any:
        if scope == "global":
            return state["scalars"][name]
        return [state["params"][key]["scalars"][name] for key in leaves]

    made = own._replace(
        step=placed(state["step"], own.step),
        **{key: tree(key) for key in ARRAYS},
        scalars=type(own.scalars)(
            **{name: placed(scalar(name), getattr(own.scalars, name)) for name in SCALARS}
        ),
    )
    return jax.tree.map(
        lambda x: made if x is own else x, opt_state, is_leaf=lambda x: isinstance(x, type(own))
    )


def _check(state: Any, arrays: Mapping[str, tuple[tuple[int, ...], Any]], scope: str) -> None:
    """Refuse a state that does not fit shapes and dtypes, or that no optimizer can have left."""
    if not isinstance(state, Mapping) or not isinstance(state.get("params"), Mapping):
        _refuse("the state", 'a dictionary with a dictionary "params"', reprlib.repr(state))
    params = state["params"]
    _same_keys("state['params']", params, arrays, "the optimizer's names", " Rename its entries.")
    for name in arrays:
        if not isinstance(params[name], Mapping):
            _refuse(f"the entry of {name!r}", "a dictionary", reprlib.repr(params[name]))
    has = {
        "global": "scalars" in state,
        "tensor": any("scalars" in params[name] for name in arrays),
    }
    other = "tensor" if scope == "global" else "global"
    if has[other] and not has[scope]:
        raise ValueError(
            f'hvadam.convert: the state is of scope="{other}", the optimizer has scope="{scope}".'
        )
    shared, own = (["scalars"], []) if scope == "global" else ([], ["scalars"])
    _same_keys("the state", state, ["step", "params", *shared])
    _check_number("step", state["step"], "step")
    if shared:
        _check_scalars("", state["scalars"])
    for name, kind in arrays.items():
        _same_keys(f"the entry of {name!r}", params[name], [*ARRAYS, *own])
        for key in ARRAYS:
            _check_array(f"{key} of {name!r}", params[name][key], key, *kind)
        if own:
            _check_scalars(f" of {name!r}", params[name]["scalars"])


def _check_scalars(whose: str, scalars: Any) -> None:
    """Refuse scalars of a hidden vector that are not all there, or not what they can be."""
    if not isinstance(scalars, Mapping):
        _refuse(f"scalars{whose}", "a dictionary", reprlib.repr(scalars))
    _same_keys(f"scalars{whose}", scalars, SCALARS)
    for name in SCALARS:
        _check_number(f"{name}{whose}", scalars[name], name)


def _check_number(what: str, value: Any, field: str) -> None:
    """Refuse a value that a field cannot have; scalars of torch count in floats."""
    low, high, rule = RANGES[field]
    kind: Any = Integral if field == "step" else Real
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if not is_number or not low <= value <= high or (field in WHOLE and value % 1 != 0):
        _refuse(what, rule, reprlib.repr(value))


def _check_array(what: str, value: Any, key: str, shape: tuple[int, ...], dtype: Any) -> None:
    """Refuse an array of another shape or kind, or with numbers that it cannot have."""
    try:
        x: Any = np.asarray(value)
    except Exception as error:
        raise ValueError(f"hvadam.convert: {what} must be an array of numbers: {error}") from error
    if x.dtype.kind not in ("fiuc" if dtype.kind == "c" else "fiu"):
        _refuse(what, "an array of real numbers", f"one of {x.dtype}")
    if x.shape != shape:
        raise ValueError(
            f"hvadam.convert: {what} has shape {x.shape}, the parameter has {shape}; transpose "
            "what is laid out otherwise."
        )
    real = np.finfo(dtype).dtype  # of a complex number's parts too
    for part in (x.real, x.imag):
        with np.errstate(over="ignore"):
            finite = np.isfinite(part.astype(real))
        if key == "exp_avg_var":
            wrong, rule = ~(finite | np.isposinf(part)) | (part < 0), "at least 0"
        else:
            wrong, rule = ~finite, "finite"
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0].tolist())
            _refuse(what, f"{rule}, and in the range of {real}", f"{part[at]} at {at}")


def _same_keys(
    what: str, ours: Iterable[Any], theirs: Iterable[Any], rule: str = "", hint: str = ""
) -> None:
    """Refuse a dictionary whose keys are not those that it must have."""
    missing = sorted(set(theirs) - set(ours))
    unknown = sorted(set(ours) - set(theirs), key=str)
    if missing or unknown:
        raise ValueError(
            f"hvadam.convert: {what} must have {rule or 'the keys ' + ', '.join(theirs)}; it lacks "
            f"{missing} and has besides {unknown}.{hint}"
        )


def _refuse(what: str, rule: str, found: str) -> NoReturn:
    """Raise the error that names a value and its rule."""
    raise ValueError(f"hvadam.convert: {what} must be {rule}, got {found}.")


def _torch_groups(optimizer: Any) -> list[dict[str, Any]]:
    """Return the param groups of an HVAdam, or refuse what is none."""
    groups = getattr(optimizer, "param_groups", None)
    if not groups or "restart_rule" not in groups[0]:
        _refuse("the optimizer", "a hvadam.HVAdam", type(optimizer).__name__)
    return groups


def _torch_parameters(groups: list[dict[str, Any]]) -> Iterable[tuple[str, Any]]:
    """Yield the parameters of all groups with their names."""
    place = 0
    for group in groups:
        for i, p in enumerate(group["params"]):
            yield group["param_names"][i] if "param_names" in group else str(place), p
            place += 1


def _torch_scope(groups: list[dict[str, Any]]) -> str:
    """Return "global" or "tensor"; one group with a vector of its own is as good as global."""
    scope = groups[0]["scope"]
    if scope == "group" and len(groups) > 1:
        raise ValueError(
            'hvadam.convert: under scope="group" there are several hidden vectors; convert the '
            "groups one by one, each with an optimizer of its own."
        )
    return "tensor" if scope == "tensor" else "global"


def _scalars(values: Iterable[float]) -> dict[str, float]:
    """Return the scalars of a hidden vector by name, but for the step."""
    named: dict[str, float] = dict(zip(FIELDS, values, strict=True))
    return {name: named[name] for name in SCALARS}


def _torch_scalars(step: int, scalars: dict[str, float], like: Any) -> Any:
    """Return the scalars of a hidden vector as torch keeps them, in float64."""
    named = {**scalars, "step": float(step)}
    values = [float(named[name]) for name in FIELDS]
    return like.detach().double().new_tensor(values)


def _widened(p: Any) -> Any:
    """Return a parameter in the dtype of its state."""
    return p.detach() if p.dtype.itemsize > 4 else p.detach().float()


def _dtype(p: Any) -> Any:
    """Return the dtype of a parameter's state as NumPy has it."""
    return _widened(p.new_zeros((), device="cpu")).numpy().dtype


def _leaves(tree: Any) -> dict[str, Any]:
    """Return the leaves of a JAX tree by their paths, as "layer.weight"."""
    import jax

    paths = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): x for path, x in paths}


def _find(opt_state: Any) -> Any:
    """Return the one ``HVAdamState`` in an Optax state."""
    import jax

    from hvadam.jax import HVAdamState

    every = jax.tree.leaves(opt_state, is_leaf=lambda x: isinstance(x, HVAdamState))
    found = [x for x in every if isinstance(x, HVAdamState)]
    if len(found) != 1:
        raise ValueError(
            f"hvadam.convert: the Optax state must hold one HVAdamState, got {len(found)}."
        )
    return found[0]
