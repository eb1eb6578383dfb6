"""Large tensors piece by piece: the same numbers as whole, in little memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hvadam import HVAdam
from hvadam.torch.kernels import pieces
from hvadam.torch.storage import BLOCK
from hvadam_bench.studies.speed.steps import temporary_bytes

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
