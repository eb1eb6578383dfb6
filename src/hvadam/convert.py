"""Move a state between torch and JAX, through plain dictionaries of NumPy arrays.

Neither framework is imported with this module, and they never meet: ``from_torch`` and ``to_torch``
use the methods of the tensors they are given, ``from_jax`` and ``to_jax`` import JAX when called.

The form in between, as NumPy and JSON-like values, for a hidden vector over all parameters::

    {"step": 120,
     "params": {"layer.weight": {"exp_avg": m, "hidden": v, "exp_avg_var": s}, ...},
     "scalars": {"steps_since_restart": 31, "alignment_ema": 0.03, ...}}

Under ``scope="tensor"`` each parameter has its "scalars" beside its arrays. Names and layouts are
yours to change in between: a transposed weight has its three arrays transposed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hvadam.core.scalars import FIELDS, INITIAL

ARRAYS = ("exp_avg", "hidden", "exp_avg_var")
SCALARS = tuple(name for name in FIELDS if name != "step")

State = dict[str, Any]


def from_torch(optimizer: Any) -> State:
    """Return the state of a ``hvadam.HVAdam`` as NumPy arrays by the names of its parameters.

    Without names, parameters are called "0", "1", ... in their order.

    Raises:
        ValueError: The state has what JAX's cannot hold: low-bit or late state, a hidden vector
            per group, or parameters that took different numbers of steps.
    """
    groups = optimizer.param_groups
    options = groups[0]
    for name, value in (("state_dtype", "float32"), ("hidden_step", "exact")):
        if options[name] != value:
            raise ValueError(
                f'hvadam.convert: a state with {name}="{options[name]}" is torch\'s alone; load it '
                f'into an optimizer with {name}="{value}" first.'
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
        ValueError: Names, shapes or the scope do not fit the optimizer.
    """
    groups = optimizer.param_groups
    scope = _torch_scope(groups)
    named = dict(_torch_parameters(groups))
    _check(state, {name: tuple(p.shape) for name, p in named.items()}, scope)
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
        ValueError: Names, shapes or the scope do not fit.
    """
    import jax
    import jax.numpy as jnp

    own = _find(opt_state)
    scope = "global" if own.scalars.mix.ndim == 0 else "tensor"
    leaves = _leaves(own.exp_avg)
    _check(state, {name: tuple(leaf.shape) for name, leaf in leaves.items()}, scope)

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


def _check(state: State, shapes: dict[str, tuple[int, ...]], scope: str) -> None:
    """Refuse a state that does not fit parameters of these shapes."""
    _same_names(state["params"], shapes)
    for name, shape in shapes.items():
        own = state["params"][name]
        for key in ARRAYS:
            if np.shape(own[key]) != shape:
                raise ValueError(
                    f"hvadam.convert: {key} of {name!r} has shape {np.shape(own[key])}, the "
                    f"parameter has {shape}; transpose what is laid out otherwise."
                )
    found = "global" if "scalars" in state else "tensor"
    if shapes and found != scope:
        raise ValueError(
            f'hvadam.convert: the state is of scope="{found}", the optimizer has scope="{scope}".'
        )


def _same_names(ours: Iterable[str], theirs: Iterable[str]) -> None:
    """Refuse names that differ."""
    missing, unknown = sorted(set(theirs) - set(ours)), sorted(set(ours) - set(theirs))
    if missing or unknown:
        raise ValueError(
            f"hvadam.convert: the state must have the optimizer's names; it lacks {missing} and "
            f"has besides {unknown}. Rename the entries of state['params']."
        )


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
