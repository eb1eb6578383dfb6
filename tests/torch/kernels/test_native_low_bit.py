"""The native kernel's low-bit state, held to the readable kernel."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from native_twin import (
    forced_step,
    parameter,
    set_grads,
)
from torch import nn

from hvadam import HVAdam
from hvadam.torch import storage
from hvadam.torch.kernels import native

pytestmark = pytest.mark.skipif(
    native.available() is not None, reason=f"no native kernel: {native.available()}"
)


VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "coupled": {"weight_decay": 0.1, "weight_decay_mode": "coupled", "maximize": True},
    "adam": {"preconditioner": "adam", "bounds": (-1.0, 1.0), "max_grad_norm": 3.0},
}
FLOATS = [torch.float32, torch.bfloat16, torch.float16]


def low_bit_cases() -> Iterator[Any]:
    """Every dtype with every state, each in two variants; and slowly, in all of them."""
    for case in itertools.product(FLOATS, ["bfloat16", "int8"], VARIANTS):
        dtype, state_dtype, variant = case
        place = FLOATS.index(dtype) + 2 * (state_dtype == "int8")
        fast = (list(VARIANTS).index(variant) - place) % len(VARIANTS) < 2
        yield pytest.param(*case, marks=[] if fast else pytest.mark.slow)


@pytest.mark.parametrize(("dtype", "state_dtype", "variant"), list(low_bit_cases()), ids=str)
def test_low_bit_state_is_that_of_the_readable_kernel(
    dtype: torch.dtype, state_dtype: Any, variant: str
) -> None:
    shapes = [(5000,), (257,), (3, 341), (255,), (1,), (), (0,)]
    params = [parameter(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]
    params[2].data = params[2].data.t().contiguous().t()
    image = parameter(2, 3, 20, 9, dtype=dtype, seed=9).detach()
    params.append(nn.Parameter(image.to(memory_format=torch.channels_last)))
    optimizer = HVAdam(
        [{"params": params[:3]}, {"params": params[3:], "lr": 3e-3, "betas": (0.8, 0.99)}],
        **{"lr": 1e-2, "betas": (0.9, 0.99), "hidden_gain": "linear", **VARIANTS[variant]},
        state_dtype=state_dtype,
        rounding_seed=2**32 - 5,
        kernel="native",
    )
    for step in range(4):
        set_grads(params, step)
        for i in {step % 4, step % 3 + 4}:
            params[i].grad = None
        for i in (2, 7):  # laid out like their parameters
            if params[i].grad is not None:
                params[i].grad = torch.empty_like(params[i]).copy_(params[i].grad)  # pyright: ignore[reportArgumentType]
        forced_step(optimizer)


@pytest.mark.parametrize("state_dtype", ["bfloat16", "int8"])
def test_gradients_that_stop_leave_the_parameters_at_rest(state_dtype: Any) -> None:
    """Their average passes through the smallest numbers there are on its way to zero."""
    p = parameter(2**18)
    optimizer = HVAdam([p], kernel="native", state_dtype=state_dtype, betas=(0.5, 0.999))
    p.grad = 1e-31 * parameter(2**18, seed=1).detach()
    before = p.detach().clone()
    for _ in range(60):
        optimizer.step()
        p.grad = torch.zeros_like(p)
    assert (p - before).abs().max() < 1e-9
    state = optimizer.state[p]
    m = storage.decode(state["exp_avg"], state.get("exp_avg_scales"))
    assert m.abs().max() < 1e-36
