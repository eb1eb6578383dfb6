"""A state moves between torch and JAX, and a run goes on where it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
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
    for options in ({"state_dtype": "bfloat16"}, {"hidden_step": "late"}):
        with pytest.raises(ValueError, match="torch's alone"):
            convert.from_torch(Torch(**options).optimizer)
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
    with pytest.raises(ValueError, match=r"it lacks \['a.bias'\]"):
        convert.to_torch(renamed, theirs.optimizer)
    turned = {k: {key: x.T for key, x in v.items()} for k, v in state["params"].items()}
    with pytest.raises(ValueError, match=r"has shape \(3, 4\), the parameter has \(4, 3\)"):
        convert.to_torch({**state, "params": turned}, theirs.optimizer)
    with pytest.raises(ValueError, match='state is of scope="global"'):
        convert.to_torch(state, Torch(scope="tensor").optimizer)
    with pytest.raises(ValueError, match="must hold one HVAdamState, got 0"):
        convert.from_jax(optax.adam(0.1).init({}))


def test_neither_framework_loads_the_other() -> None:
    code = """
import sys, hvadam.convert
assert not {"torch", "jax"} & set(sys.modules)
import hvadam.jax
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
