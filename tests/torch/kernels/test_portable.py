"""The portable kernels: few calls, sums in float32, large tensors in pieces."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from hvadam import HVAdam
from hvadam.core.scalars import FIELDS
from hvadam.torch.kernels import pieces, sums
from hvadam.torch.storage import BLOCK
from hvadam_bench.studies.speed.steps import temporary_bytes


class Calls(TorchDispatchMode):
    """Count torch's calls by name."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[func.name()] += 1
        return func(*args, **(kwargs or {}))


def test_a_step_takes_few_calls_however_many_tensors() -> None:
    for count in (2, 50):
        params = [nn.Parameter(torch.ones(30)) for _ in range(count)]
        optimizer = HVAdam(params, kernel="foreach")
        for i in range(3):
            for p in params:
                p.grad = torch.linspace(-1.0, 1.0, 30).add(i).cos()
            with Calls() as calls:
                optimizer.step()
        lists = [n for name, n in calls.counts.items() if "_foreach" in name]
        assert sum(lists) == 20


# Sums in float32: the cosine and the mix are those of float64, wherever v and m_hat lie.
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


def scalars_after(m_hat: Tensor, v: Tensor, kernel: Any) -> dict[str, float]:
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
    found = scalars_after(m_hat, v, "loop")
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
    plain, scaled = (scalars_after(x * m_hat, x * v, kernel) for x in (1.0, scale))
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


# Large tensors piece by piece: the same numbers as whole, in little memory.
KERNELS = pytest.mark.parametrize("kernel", ["loop", "foreach"])
OPTIONS = pytest.mark.parametrize(
    "options",
    [
        {},
        {"state_dtype": "bfloat16"},
        {"state_dtype": "int8"},
    ],
    ids=str,
)


def stepped(kernel: Any, options: dict[str, Any], steps: int = 3) -> HVAdam:
    """An optimizer after some steps over tensors smaller and larger than a piece."""
    torch.manual_seed(0)
    values = [
        torch.randn(()),
        torch.randn(100),
        torch.randn(7, 9),
        torch.randn(5 * BLOCK + 3),
        torch.randn(40, 60).t(),
        torch.randn(2, 8, 9, 10).to(memory_format=torch.channels_last),
        torch.randn(50, 90)[:, :45],  # not dense: never cut
        torch.randn(3 * BLOCK).to(torch.bfloat16),
    ]
    params = [nn.Parameter(x) for x in values]
    optimizer = HVAdam(params, lr=0.01, kernel=kernel, max_grad_norm=1.0, **options)
    for _ in range(steps):
        for p in params:
            p.grad = torch.randn_like(p) + 0.5
        optimizer.step()
    return optimizer


def kept(optimizer: HVAdam, *names: str) -> list[Tensor]:
    states = optimizer.state.values()
    return [x for state in states for key, x in state.items() if key.startswith(names)]


@KERNELS
@OPTIONS
def test_pieces_do_what_the_whole_does(
    kernel: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    start, whole = stepped(kernel, options, steps=1), stepped(kernel, options)
    monkeypatch.setattr(pieces, "CACHED", 2 * BLOCK)
    cut_start, cut = stepped(kernel, options, steps=1), stepped(kernel, options)
    for a, b in zip(whole.state, cut.state, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    for a, b in zip(kept(start, "step", "exp"), kept(cut_start, "step", "exp"), strict=True):
        assert torch.equal(a, b)  # the random bits are those of the element, wherever it is cut
    # The dots are added up in another order; v may fall to the other side of a rounding.
    quantum = {"int8": 0.02, "bfloat16": 0.01}.get(options.get("state_dtype", ""), 1e-6)
    for a, b in zip(kept(whole, "hidden"), kept(cut, "hidden"), strict=True):
        if a.dtype != torch.int8:
            torch.testing.assert_close(a, b, rtol=quantum, atol=1e-6)


@KERNELS
@OPTIONS
def test_what_is_computed_on_the_way_takes_little_memory(
    kernel: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "CACHED", 16 * BLOCK)
    w = nn.Parameter(torch.randn(20 * pieces.CACHED))
    optimizer = HVAdam([w], kernel=kernel, **options)
    w.grad = torch.randn_like(w)
    optimizer.step()
    assert temporary_bytes(optimizer.step) < 100 * pieces.CACHED  # uncut it is 24 w.numel() or more
