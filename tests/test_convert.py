"""A state moves between torch and JAX, and a run goes on where it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from hvadam import HVAdam, convert
from hvadam.jax import hvadam

SHAPES = {"a.weight": (4, 3), "a.bias": (4, 3)}
OPTIONS: dict[str, Any] = {"hidden_gain": "linear"}


class Torch:
    """Parameters and HVAdam in torch."""

    def __init__(self, **options: Any) -> None:
        random = np.random.default_rng(0)
        self.params = {
            name: torch.nn.Parameter(
                torch.tensor(random.standard_normal(shape), dtype=torch.float32)
            )
            for name, shape in SHAPES.items()
        }
        self.optimizer = HVAdam(self.params.items(), lr=0.01, **{**OPTIONS, **options})

    def step(self, grads: dict[str, np.ndarray]) -> None:
        for name, p in self.params.items():
            p.grad = torch.from_numpy(grads[name])
        self.optimizer.step()


class Jax:
    """A run of HVAdam in JAX; parameters are nested as names with dots say."""

    def __init__(self, params: Mapping[str, Tensor], **options: Any) -> None:
        self.params: Any = nested({name: p.detach().numpy().copy() for name, p in params.items()})
        self.optimizer = hvadam(0.01, **{**OPTIONS, **options})
        self.state = self.optimizer.init(self.params)
        self.update = jax.jit(self.optimizer.update)

    def step(self, grads: dict[str, np.ndarray]) -> None:
        updates, self.state = self.update(nested(grads), self.state, self.params)
        self.params = optax.apply_updates(self.params, updates)


def nested(arrays: dict[str, np.ndarray]) -> Any:
    return {"a": {name.split(".")[1]: jnp.asarray(x) for name, x in arrays.items()}}


def gradients(step: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(step)
    return {
        name: (1 + random.standard_normal(shape)).astype(np.float32)
        for name, shape in SHAPES.items()
    }


def assert_close(a: dict[str, Any], b: dict[str, Any]) -> None:
    """Assert equality of states, to rounding; counters exactly."""
    assert a["step"] == b["step"]
    for name in SHAPES:
        for key in convert.ARRAYS:
            x, y = a["params"][name][key], b["params"][name][key]
            np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6 * abs(y).max(), err_msg=key)
    rows = [(a, b)] if "scalars" in a else [(a["params"][n], b["params"][n]) for n in SHAPES]
    for one, other in rows:
        for key in convert.SCALARS:
            x, y = one["scalars"][key], other["scalars"][key]
            exact = key in ("steps_since_restart", "restarts", "holds")
            # The mix is a quotient by ‖v - m̂‖², which is small beside what it is made of.
            near = pytest.approx(y, rel=1e-5, abs=1e-4 if key == "mix" else 1e-6)
            assert x == y if exact else x == near, key


def assert_params(ours: Jax, theirs: Torch) -> None:
    for name, p in theirs.params.items():
        x = ours.params["a"][name.split(".")[1]]
        np.testing.assert_allclose(x, p.detach().numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scope", ["global", "tensor"])
def test_torch_and_jax_agree_from_the_same_state(scope: Any) -> None:
    """Step by step, the state of torch handed over before each."""
    theirs = Torch(scope=scope)
    ours = Jax(theirs.params, scope=scope)
    for i in range(6):
        ours.state = convert.to_jax(convert.from_torch(theirs.optimizer), ours.state)
        ours.params = nested({n: p.detach().numpy().copy() for n, p in theirs.params.items()})
        theirs.step(gradients(i))
        ours.step(gradients(i))
        assert_params(ours, theirs)
        assert_close(convert.from_jax(ours.state), convert.from_torch(theirs.optimizer))


def test_a_run_begun_in_jax_goes_on_in_torch() -> None:
    theirs = Torch()
    ours = Jax(theirs.params)
    for i in range(4):
        ours.step(gradients(i))
    state = convert.from_jax(ours.state)
    assert type(state["params"]["a.bias"]["hidden"]) is np.ndarray
    for name, p in theirs.params.items():
        p.data.copy_(torch.from_numpy(np.array(ours.params["a"][name.split(".")[1]])))
    convert.to_torch(state, theirs.optimizer)
    assert_close(convert.from_torch(theirs.optimizer), state)
    for i in range(4, 8):
        theirs.step(gradients(i))
        ours.step(gradients(i))
    assert_params(ours, theirs)
    assert theirs.optimizer.diagnostics()["global"]["step"] == 8


def test_what_jax_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match='state_dtype="bfloat16" is torch\'s alone; load it into'):
        convert.from_torch(Torch(state_dtype="bfloat16").optimizer)
    uneven = Torch()
    uneven.step(gradients(0))
    uneven.params["a.bias"].grad = None
    uneven.optimizer.step()
    with pytest.raises(ValueError, match="same number of steps, got from 1 to 2"):
        convert.from_torch(uneven.optimizer)
    groups = HVAdam([{"params": [p]} for p in Torch().params.values()], scope="group")
    with pytest.raises(ValueError, match="several hidden vectors"):
        convert.from_torch(groups)


def test_what_does_not_fit_is_refused() -> None:
    theirs = Torch()
    state = convert.from_torch(theirs.optimizer)
    renamed = {**state, "params": {"a.weight": state["params"]["a.weight"]}}
    with pytest.raises(ValueError, match=r"the optimizer's names; it lacks \['a.bias'\]"):
        convert.to_torch(renamed, theirs.optimizer)
    turned = {k: {key: x.T for key, x in v.items()} for k, v in state["params"].items()}
    with pytest.raises(ValueError, match=r"has shape \(3, 4\), the parameter has \(4, 3\)"):
        convert.to_torch({**state, "params": turned}, theirs.optimizer)
    with pytest.raises(ValueError, match='state is of scope="global"'):
        convert.to_torch(state, Torch(scope="tensor").optimizer)
    with pytest.raises(ValueError, match="must hold one HVAdamState, got 0"):
        convert.from_jax(optax.adam(0.1).init({}))
    adam = torch.optim.Adam(theirs.params.values())
    for wrong in (adam, None):
        with pytest.raises(ValueError, match=r"must be a hvadam\.HVAdam, got (Adam|None)"):
            convert.from_torch(wrong)
        with pytest.raises(ValueError, match=r"must be a hvadam\.HVAdam, got (Adam|None)"):
            convert.to_torch(state, wrong)


NAN, INF = float("nan"), float("inf")
ZEROS = np.zeros((4, 3), np.float32)
MISSING: Any = object()
# Where in a state, what stands there, and the words of the refusal.
NONSENSE: list[tuple[tuple[str, ...], Any, str]] = [
    *(
        (("step",), value, r"step must be a whole number in \[0, 2\*\*31\), got ")
        for value in (-1, 2.5, NAN, 2**40, 2**31, "5", True, None, [5], 5.0)
    ),
    (("step",), MISSING, r"the state must have the keys step, .*; it lacks \['step'\]"),
    (("stepp",), 1, r"the state must have the keys .* has besides \['stepp'\]"),
    (("params",), [ZEROS], 'the state must be a dictionary with a dictionary "params"'),
    (("params",), MISSING, 'the state must be a dictionary with a dictionary "params"'),
    (("params", "a.bias"), ZEROS, "the entry of 'a.bias' must be a dictionary, got array"),
    (("params", "a.bias", "mass"), ZEROS, r"'a.bias' must have .* has besides \['mass'\]"),
    (("params", "a.bias", "hidden"), MISSING, r"'a.bias' must have .* lacks \['hidden'\]"),
    (("params", "a.bias", "hidden"), ZEROS * NAN, r"hidden of 'a.bias' must be finite.* nan at"),
    (("params", "a.bias", "hidden"), ZEROS + INF, r"hidden of 'a.bias' must be finite.* inf at"),
    (("params", "a.bias", "exp_avg"), ZEROS * 1j, "real numbers, got one of complex64"),
    (("params", "a.bias", "exp_avg"), ZEROS > 0, "real numbers, got one of bool"),
    (("params", "a.bias", "exp_avg"), ZEROS.astype(str), "real numbers, got one of <U"),
    (("params", "a.bias", "exp_avg"), np.full((4, 3), None), "real numbers, got one of object"),
    (("params", "a.bias", "exp_avg"), [[0.0], []], "exp_avg of 'a.bias' must be an array of num"),
    (
        ("params", "a.bias", "exp_avg"),
        np.full((4, 3), 1e39),
        r"range of float32, got 1e\+39 at \(0",
    ),
    (("params", "a.bias", "exp_avg_var"), ZEROS - 1, "at least 0, and .* got -1.0 at "),
    (("params", "a.bias", "exp_avg_var"), ZEROS * NAN, "at least 0, and .* got nan at "),
    (("params", "a.bias", "exp_avg_var"), ZEROS - INF, "at least 0, and .* got -inf at "),
    (("params", "a.bias", "exp_avg_var"), np.full((4, 3), 1e39), r"range of float32, got 1e\+39"),
    (("scalars",), 3, "scalars.* must be a dictionary, got 3"),
    (("scalars", "mix"), MISSING, r"scalars.* must have the keys .*; it lacks \['mix'\]"),
    (("scalars", "max"), 1.0, r"scalars.* must have the keys .* has besides \['max'\]"),
    (("scalars", "mix"), NAN, "mix.* must be a finite number, got nan"),
    (("scalars", "mix"), "1", "mix.* must be a finite number, got '1'"),
    (("scalars", "steps_since_restart"), -2, r"steps_since_restart.* in \[-1, 2\*\*31\), got -2"),
    (("scalars", "steps_since_restart"), 1.5, r"steps_since_restart.* got 1.5"),
    (("scalars", "holds"), -1.0, r"holds.* must be a whole number in \[0, .* got -1.0"),
    (
        ("scalars", "restarts"),
        2**31,
        r"restarts.* must be a whole number in \[0, .* got 2147483648",
    ),
    (("scalars", "alignment"), 1.5, r"alignment.* must be in \[0, 1\], got 1.5"),
    (("scalars", "alignment_ema"), -0.5, r"alignment_ema.* must be in \[0, 1\], got -0.5"),
    (("scalars", "hidden_gain"), INF, "hidden_gain.* must be a finite number, at least 0, got inf"),
    (("scalars", "hidden_norm"), -1.0, "hidden_norm.* must be a finite number, at least 0, got -1"),
    (("scalars", "exp_avg_norm"), True, "exp_avg_norm.* must be a finite number.* got True"),
]


@cache
def pair(scope: Any) -> tuple[Torch, Jax]:
    """Return optimizers to convert to, made once: to build them takes most of the time."""
    theirs = Torch(scope=scope)
    theirs.step(gradients(0))
    return theirs, Jax(theirs.params, scope=scope)


def changed(state: Any, path: tuple[str, ...], value: Any) -> Any:
    """Return a copy of nested dictionaries with one value in place of another, or without it."""
    copy, (first, *rest) = dict(state), path
    if rest:
        copy[first] = changed(copy[first], tuple(rest), value)
    elif value is MISSING:
        del copy[first]
    else:
        copy[first] = value
    return copy


@pytest.mark.parametrize("scope", ["global", "tensor"])
@pytest.mark.parametrize(
    ("path", "value", "words"), NONSENSE, ids=[f"{'.'.join(p)} {v!r:.20}" for p, v, _ in NONSENSE]
)
def test_nonsense_is_refused_before_anything_changes(
    path: tuple[str, ...], value: Any, words: str, scope: Any
) -> None:
    theirs, ours = pair(scope)
    before = convert.from_torch(theirs.optimizer)
    if scope == "tensor" and path[0] == "scalars":
        path = ("params", "a.bias", *path)
    wrong = changed(before, path, value)
    with pytest.raises(ValueError, match=f"^hvadam.convert: .*{words}"):
        convert.to_torch(wrong, theirs.optimizer)
    with pytest.raises(ValueError, match=f"^hvadam.convert: .*{words}"):
        convert.to_jax(wrong, ours.state)
    after = convert.from_torch(theirs.optimizer)
    jax.tree.map(np.testing.assert_array_equal, after, before)


@pytest.mark.parametrize("state", [None, [], "state", 3, {}])
def test_what_is_no_state_is_refused(state: Any) -> None:
    theirs = Torch()
    for convert_it in (
        lambda: convert.to_torch(state, theirs.optimizer),
        lambda: convert.to_jax(state, Jax(theirs.params).state),
    ):
        with pytest.raises(ValueError, match="the state must be a dictionary with a dictionary"):
            convert_it()


def test_what_overflowed_gradients_leave_is_a_state() -> None:
    theirs = Torch()
    for i in range(3):
        huge = gradients(i)
        if i == 1:
            huge["a.bias"][0, 0] = 2.4e25
        theirs.step(huge)
    state = convert.from_torch(theirs.optimizer)
    assert np.isinf(state["params"]["a.bias"]["exp_avg_var"]).sum() == 1
    ours = Jax(theirs.params)
    ours.state = convert.to_jax(state, ours.state)
    ours.step(gradients(3))
    back = Torch()
    convert.to_torch(convert.from_jax(ours.state), back.optimizer)
    back.step(gradients(4))
    for x in (*ours.params["a"].values(), *(p.detach() for p in back.params.values())):
        assert np.isfinite(np.asarray(x)).all()


def arrays(low: float, high: float) -> st.SearchStrategy[np.ndarray]:
    """Draw arrays of the parameters' shape, of a few numbers of any size in a range."""
    few = st.lists(st.floats(low, high, width=32), min_size=1, max_size=3)
    return few.map(lambda numbers: np.resize(np.array(numbers, np.float32), (4, 3)))


@st.composite
def states(draw: st.DrawFn, scope: str) -> dict[str, Any]:
    """Draw states that an optimizer can have left."""
    counts, norms = st.integers(0, 2**24), st.floats(0, 2.0**100, width=32)
    scalars = st.fixed_dictionaries(
        {
            "steps_since_restart": st.integers(-1, 2**24),
            "alignment_ema": st.floats(0, 1, width=32),
            "alignment": st.floats(0, 1, width=32),
            "mix": st.floats(-(2.0**100), 2.0**100, width=32),
            "hidden_gain": norms,
            "restarts": counts,
            "holds": counts,
            "exp_avg_norm": norms,
            "hidden_norm": norms,
        }
    )
    most = float(np.finfo(np.float32).max)
    entry = {"exp_avg": arrays(-most, most), "hidden": arrays(-most, most)}
    entry["exp_avg_var"] = arrays(0, INF)
    own: dict[str, Any] = {"scalars": scalars}
    params = st.fixed_dictionaries(
        dict.fromkeys(SHAPES, st.fixed_dictionaries(entry | (own if scope == "tensor" else {})))
    )
    shared = own if scope == "global" else {}
    return draw(st.fixed_dictionaries({"step": counts, "params": params, **shared}))


@pytest.mark.parametrize("scope", ["global", "tensor"])
@given(data=st.data())
def test_a_round_trip_changes_nothing(scope: Any, data: st.DataObject) -> None:
    state = data.draw(states(scope))
    theirs, ours = pair(scope)
    convert.to_torch(state, theirs.optimizer)
    made = convert.to_jax(convert.from_torch(theirs.optimizer), ours.state)
    jax.tree.map(np.testing.assert_array_equal, convert.from_jax(made), state)


def test_neither_framework_loads_the_other() -> None:
    code = """
import sys, hvadam.convert
assert not {"torch", "jax"} & set(sys.modules)
import hvadam.jax
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
