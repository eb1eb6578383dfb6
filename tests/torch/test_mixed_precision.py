"""Training under autocast and with a gradient scaler."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from made_parameters import Build, Same
from torch import nn

from hvadam import HVAdam


def test_autocast(build: Build) -> None:
    model = build()
    optimizer = HVAdam(model.parameters(), lr=0.01)
    x = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
    y = x.sum(1, keepdim=True).expand(-1, 2)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(x)
            loss = nn.functional.mse_loss(out.float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert {optimizer.state[p]["hidden"].dtype for p in model.parameters()} == {torch.float32}


def test_a_grad_scaler_is_exact_and_skips_overflow(build: Build, assert_same: Same) -> None:
    model, twin = build(), build()
    optimizer, plain = HVAdam(model.parameters(), lr=0.01), HVAdam(twin.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=1000)
    x = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
    for step in range(6):
        overflow = step == 3
        optimizer.zero_grad()
        scaler.scale(model(x).square().mean()).backward()
        if overflow:
            first = next(model.parameters())
            assert first.grad is not None
            first.grad.view(-1)[0] = torch.inf
        before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        scaler.step(optimizer)
        scaler.update()
        if overflow:
            assert_same((model.state_dict(), optimizer.state_dict()), before)
            assert scaler.get_scale() == 2.0**9
            continue
        plain.zero_grad()
        twin(x).square().mean().backward()
        plain.step()
        assert_same(model.state_dict(), twin.state_dict())


@pytest.mark.parametrize("options", [{}, {"max_grad_norm": 1.0}], ids=str)
def test_under_a_scaler_gradients_and_hooks_are_as_with_adamw(options: dict[str, Any]) -> None:
    """Who clips or logs gradients finds them unscaled, and an overflow calls no step."""
    seen: dict[str, list[Any]] = {}
    for kind in (HVAdam, torch.optim.AdamW):
        w = nn.Parameter(torch.ones(3))
        optimizer = kind([w], **(options if kind is HVAdam else {}))
        assert not getattr(optimizer, "_step_supports_amp_scaling", False)
        mine = seen.setdefault(kind.__name__, [])
        optimizer.register_step_post_hook(lambda given, *_, mine=mine: mine.append("stepped"))
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        for factor in (1.0, torch.inf, 1.0):
            optimizer.zero_grad()
            scaler.scale(factor * w.sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            assert w.grad is not None
            mine += [*w.grad.tolist(), scaler.get_scale()]
    assert seen["HVAdam"] == seen["AdamW"]
    assert seen["HVAdam"].count("stepped") == 2


def test_float16_gradients_are_unscaled_by_the_step() -> None:
    """A scaler refuses to, as the quotient may vanish in float16; here it never is float16."""
    w = nn.Parameter(torch.ones(3, dtype=torch.float16))
    adamw, optimizer = torch.optim.AdamW([w]), HVAdam([w], betas=(0.0, 0.999))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    scaler.scale((2.0**-30 * w.float()).sum()).backward()
    with pytest.raises(ValueError, match="unscale FP16 gradients"):
        scaler.step(adamw)
    scaler.step(optimizer)
    assert optimizer.state[w]["exp_avg"].tolist() == [2.0**-30] * 3  # float16 ends at 2**-24
