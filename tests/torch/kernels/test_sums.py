"""Sums in float32: the cosine and the mix are those of float64, wherever v and m_hat lie."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from hvadam import HVAdam
from hvadam.core.scalars import FIELDS
from hvadam.torch.kernels import sums

SIZES = (5_000, 100_000, 1_000_000)
CASES = {  # v = along m_hat + across a vector apart
    "apart": (0.0, 1.0),
    "orthogonal but for a little": (1e-3, 1.0),
    "parallel, as long": (1.0, 1e-3),
    "parallel, much shorter": (1e-2, 1e-6),
    "parallel, longer": (3.0, 1e-4),
    "parallel, twice as long, but for rounding": (2.0, 1e-6),
    "opposed": (-1.0, 1e-3),
    "longer by far": (10.0, 1e3),
}


def vectors(size: int, case: str) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(size)
    m_hat, apart = torch.randn(2, size, generator=generator)
    along, across = CASES[case]
    return m_hat, along * m_hat + across * apart


def stepped(m_hat: Tensor, v: Tensor, kernel: Any) -> dict[str, float]:
    """Return the scalars after a step of a hidden vector v, with m_hat for a gradient."""
    p = torch.nn.Parameter(torch.zeros_like(v))
    optimizer = HVAdam([p], kernel=kernel, betas=(0.0, 0.999))
    p.grad = v.clone()
    optimizer.step()  # v starts as the gradient
    p.grad = m_hat.clone()
    optimizer.step()
    return dict(zip(FIELDS, optimizer.param_groups[0]["scalars"].tolist(), strict=True))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES)
def test_the_cosine_is_that_of_float64(case: str, size: int) -> None:
    m_hat, v = vectors(size, case)
    found = stepped(m_hat, v, "loop")
    m_hat, v = m_hat.double(), v.double()
    d = v - m_hat
    mix = 1 - d.dot(v) / d.dot(d)
    cosine = (m_hat + mix * d).norm() / m_hat.norm()
    assert abs(found["alignment"] - cosine) < 5e-8
    turned = 1 + (v.norm() / d.norm()).item()  # what a rounding of d makes of the mix
    assert abs(found["mix"] - mix) < 1e-7 * turned


@pytest.mark.parametrize("kernel", ["loop", "foreach"])
@pytest.mark.parametrize("scale", [1e-25, 1e-18, 1e18, 1e25])
@pytest.mark.parametrize("size", [64, 3_000, 200_000])
def test_squares_may_leave_the_range_of_float32(size: int, scale: float, kernel: Any) -> None:
    m_hat, v = vectors(size, "apart")
    plain, scaled = (stepped(x * m_hat, x * v, kernel) for x in (1.0, scale))
    for name in ("alignment", "mix", "steps_since_restart", "holds"):
        assert scaled[name] == pytest.approx(plain[name], abs=1e-6)
    assert scaled["exp_avg_norm"] == pytest.approx(scale * plain["exp_avg_norm"], rel=1e-6)


@pytest.mark.parametrize("size", [0, 1, sums.ROW + 5, sums.FEW - 1, sums.FEW, sums.FEW + 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_and_what_is_left_of_them(size: int, dtype: torch.dtype) -> None:
    v, m = torch.randn(2, size, generator=torch.Generator().manual_seed(0), dtype=dtype)
    found = sums.dots(v, m, 0.9)
    d = v.double() - 0.9 * m.double()
    exact = torch.stack([d.dot(d), d.dot(v.double()), (0.9 * m.double()).square().sum()])
    torch.testing.assert_close(found[:3], exact, rtol=0, atol=1e-7 * size)
    squares = v.double().square().sum()
    torch.testing.assert_close(found[3], squares, rtol=2e-7, atol=0)
    torch.testing.assert_close(sums.foot(v), squares, rtol=2e-7, atol=0)
