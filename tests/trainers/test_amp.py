"""Mixed precision in plain torch: autocast in bfloat16, and in float16 with a GradScaler."""

from __future__ import annotations

import copy
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hvadam import HVAdam

Same = Callable[[Any, Any], None]


def test_the_page_runs(program: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(program("amp.md")), run_name="__main__")
    losses = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    assert losses[-1] < losses[0] / 4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_learns_and_keeps_full_precision(dtype: torch.dtype) -> None:
    model, optimizer = build()
    losses = [train_step(model, optimizer, step, autocast=dtype) for step in range(100)]
    assert losses[-1] < losses[0] / 4
    for p in model.parameters():
        assert p.dtype == torch.float32
        assert optimizer.state[p]["exp_avg_var"].dtype == torch.float32


@pytest.mark.parametrize("options", [{}, {"max_grad_norm": 0.1}])
def test_a_scaler_changes_nothing_but_the_range(options: dict[str, Any], assert_same: Same) -> None:
    """Scaled by a power of two, no bit of a float32 gradient is lost; HVAdam divides it out."""
    plain, plain_optimizer = build(**options)
    scaled, scaled_optimizer = build(**options)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=7)
    for step in range(20):  # the scale doubles twice on the way
        train_step(plain, plain_optimizer, step)
        train_step(scaled, scaled_optimizer, step, scaler=scaler)
    assert scaler.get_scale() == 2.0**14
    assert_same(scaled.state_dict(), plain.state_dict())
    assert_same(scaled_optimizer.state_dict(), plain_optimizer.state_dict())


def test_unscaling_first_is_the_same_in_float16(assert_same: Same) -> None:
    """A loop that clips by hand calls ``unscale_`` before; then HVAdam must not divide again."""
    outcomes = []
    for unscale_first in (False, True):
        model, optimizer = build()
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)
        for step in range(20):
            train_step(model, optimizer, step, torch.float16, scaler, unscale_first)
        outcomes.append([model.state_dict(), optimizer.state_dict()])
    assert_same(*outcomes)


def test_overflow_skips_the_step_bit_for_bit(assert_same: Same) -> None:
    model, optimizer = build()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)
    for step in range(5):
        train_step(model, optimizer, step, torch.float16, scaler)
    scaler.update(2.0**40)  # float16 ends at 65504
    before = copy.deepcopy([model.state_dict(), optimizer.state_dict()])
    train_step(model, optimizer, 5, torch.float16, scaler)
    assert_same([model.state_dict(), optimizer.state_dict()], before)
    assert scaler.get_scale() == 2.0**39  # as after every overflow
    assert not any(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def build(**options: Any) -> tuple[nn.Module, HVAdam]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    return model, HVAdam(model.parameters(), lr=1e-2, **options)


def train_step(
    model: nn.Module,
    optimizer: HVAdam,
    step: int,
    autocast: torch.dtype | None = None,
    scaler: torch.amp.GradScaler | None = None,
    unscale_first: bool = False,
) -> float:
    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(step))
    scaler = scaler or torch.amp.GradScaler("cpu", enabled=False)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
        output: Tensor = model(x)
        loss = nn.functional.mse_loss(output.float(), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    if unscale_first:
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()
