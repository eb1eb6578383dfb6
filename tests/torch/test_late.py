"""hidden_step="late": what is pending, when it is done, and who may do it early."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hvadam import HVAdam
from hvadam.torch.kernels import KERNELS

AVAILABLE = ["auto", *(name for name, kernel in KERNELS.items() if kernel.available() is None)]
DTYPES = ["float32", "bfloat16", "int8"]


def parameters() -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(s, generator=generator)) for s in ((4, 3), (5,), (300,))]


def trained(steps: int, first: int = 0, optimizer: HVAdam | None = None, **options: Any) -> HVAdam:
    """Steps on a trend plus noise; the second parameter has a gradient every other time."""
    if optimizer is None:
        options = {"lr": 0.05, "hidden_gain": "linear", "betas": (0.9, 0.9), **options}
        optimizer = HVAdam(parameters(), hidden_step="late", **options)
    params = [p for group in optimizer.param_groups for p in group["params"]]
    for i in range(first, first + steps):
        generator = torch.Generator().manual_seed(1000 + i)
        for j, p in enumerate(params):
            p.grad = 0.3 + torch.randn(p.shape, generator=generator)
            if j == 1 and i % 2:
                p.grad = None
        optimizer.step()
    return optimizer


def contents(optimizer: HVAdam) -> list[Tensor]:
    params = [p for group in optimizer.param_groups for p in group["params"]]
    return [p.detach() for p in params] + [x for p in params for x in optimizer.state[p].values()]


def same(a: HVAdam, b: HVAdam) -> bool:
    return all(torch.equal(x, y) for x, y in zip(contents(a), contents(b), strict=True))


def test_the_pending_part_keeps_the_rate_it_was_made_with() -> None:
    optimizer = trained(6)
    p = optimizer.param_groups[0]["params"][0]
    weight, along = optimizer.state[p]["pending"].tolist()
    found = optimizer.diagnostics()["global"]
    assert weight == pytest.approx(1 - found["mix"])
    assert along == pytest.approx(0.05 * found["hidden_gain"])
    optimizer.param_groups[0]["lr"] = 0.0
    before, state = p.detach().clone(), optimizer.state[p]
    m_hat = state["exp_avg"] / (1 - 0.9**6)
    v = state["hidden"] + weight * (m_hat - state["hidden"])
    trained(1, 6, optimizer)
    torch.testing.assert_close(before - p.detach(), along * v, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kernel", AVAILABLE)
def test_parameters_without_gradients_get_theirs_too(kernel: str) -> None:
    optimizer = trained(5, kernel=kernel)  # the second one took part in the last step
    p = optimizer.param_groups[0]["params"][1]
    before, pending = p.detach().clone(), optimizer.state[p]["pending"].clone()
    assert pending.all()
    trained(1, 5, optimizer)  # and has no gradient in this one
    assert not torch.equal(p, before)
    assert not optimizer.state[p]["pending"].any()
    after = p.detach().clone()
    trained(1, 7, optimizer)  # nor in this: nothing is left to do
    assert torch.equal(p, after)


def test_bounds_hold_after_the_pending_part() -> None:
    optimizer = trained(30, bounds=(-0.2, 0.2))
    optimizer.flush()
    for p in optimizer.param_groups[0]["params"]:
        assert p.abs().max() <= 0.2


@pytest.mark.parametrize("state_dtype", DTYPES)
def test_flush_does_what_is_pending_once(state_dtype: str) -> None:
    optimizer = trained(5, state_dtype=state_dtype)
    twin = copy.deepcopy(optimizer)
    optimizer.flush()
    assert not same(optimizer, twin)
    assert not any(optimizer.state[p]["pending"].any() for p in optimizer.state)
    again = copy.deepcopy(optimizer)
    optimizer.flush()
    assert same(optimizer, again)


@pytest.mark.parametrize("state_dtype", DTYPES)
def test_evaluation_shows_the_flushed_parameters_and_changes_nothing(state_dtype: str) -> None:
    optimizer = trained(5, state_dtype=state_dtype)
    flushed, before = copy.deepcopy(optimizer), copy.deepcopy(optimizer)
    flushed.flush()
    with optimizer.evaluation():
        assert same(optimizer, flushed)
    assert same(optimizer, before)
    with pytest.raises(ZeroDivisionError), optimizer.evaluation():
        raise ZeroDivisionError
    assert same(optimizer, before)
    assert same(trained(3, 5, optimizer), trained(3, 5, before))


@pytest.mark.parametrize("state_dtype", DTYPES)
def test_state_dict_carries_what_is_pending(state_dtype: str) -> None:
    optimizer = trained(5, state_dtype=state_dtype)
    before = copy.deepcopy(optimizer)
    buffer = io.BytesIO()
    params = [p.detach().clone() for p in optimizer.param_groups[0]["params"]]
    torch.save(optimizer.state_dict(), buffer)
    assert same(optimizer, before)
    buffer.seek(0)
    resumed = HVAdam([nn.Parameter(p) for p in params], hidden_step="late", state_dtype=state_dtype)  # pyright: ignore
    with pytest.warns(UserWarning, match="changed .*: betas from .*; hidden_gain from"):
        resumed.load_state_dict(torch.load(buffer, weights_only=True))
    assert same(trained(4, 5, resumed), trained(4, 5, optimizer))


def test_exact_and_late_states_are_not_mixed_up() -> None:
    late = trained(3)
    exact = HVAdam(parameters())
    with pytest.raises(ValueError, match="made with hidden_step='late'"):
        exact.load_state_dict(late.state_dict())
    exact.flush()  # nothing is ever pending
    with exact.evaluation():
        pass


def test_nothing_is_done_by_a_step_without_gradients() -> None:
    optimizer = trained(3)
    before = copy.deepcopy(optimizer)
    optimizer.zero_grad()
    optimizer.step()
    assert same(optimizer, before)
