"""Steps of the native kernel, and a twin on the readable kernel that they are held to."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from hvadam import HVAdam
from hvadam.core.scalars import MIX
from hvadam.torch import storage

STATES = ["float32", "bfloat16", "int8"]


def parameter(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> nn.Parameter:
    """Return a parameter of normal numbers, drawn in double precision and then rounded."""
    generator = torch.Generator().manual_seed(seed)
    return nn.Parameter(torch.randn(shape, dtype=torch.float64, generator=generator).to(dtype))


def set_grads(params: list[Any], step: int) -> None:
    """Set gradients with a trend and some noise, the same for the same shapes and step."""
    generator = torch.Generator().manual_seed(1000 + step)
    for p in params:
        kind = torch.complex128 if p.is_complex() else torch.float64
        p.grad = (1.0 + torch.randn(p.shape, dtype=kind, generator=generator)).to(p.dtype)


def everyone(optimizer: HVAdam) -> list[Any]:
    """Return the parameters of all groups."""
    return [p for group in optimizer.param_groups for p in group["params"]]


def memory_of(optimizer: HVAdam) -> list[Tensor]:
    """Return the tensors that a step may write: the parameters and their state."""
    found: list[Tensor] = []
    for p in everyone(optimizer):
        found += [p, *(x for x in optimizer.state[p].values() if isinstance(x, Tensor))]
    return found


def as_bytes(x: Tensor) -> Tensor:
    """Return the memory of a tensor as bytes."""
    return x.detach().contiguous().reshape(-1).view(torch.uint8)


def assert_same(left: list[Tensor], right: list[Tensor]) -> None:
    """Assert that two lists of tensors have the same bits."""
    for i, (x, y) in enumerate(zip(left, right, strict=True)):
        assert torch.equal(as_bytes(x), as_bytes(y)), f"tensor {i} differs"


MISSES = 0.01  # of all numbers stored
LAST_BIT = 2.0**-22  # of the terms of a sum, whatever is left of it
SCALE_BIT = 2.0**-15  # of a scale, which has 16


def forced_step(optimizer: HVAdam) -> None:
    """Step an optimizer and a twin on the readable kernel from one state; assert they agree.

    The two add in another order, so a random rounding may now and then fall on the other side: few
    stored numbers may differ, by one quantum, or by the last bit of what they are the sum of. That
    moves the dots, and with the mix all of v a little.
    """
    twin = copy.deepcopy(optimizer)
    for group in twin.param_groups:
        group["kernel"] = "loop"
    before = [(p.detach().clone(), numbers(optimizer.state.get(p))) for p in everyone(optimizer)]
    for p, q in zip(everyone(optimizer), everyone(twin), strict=True):
        q.grad = p.grad
    optimizer.step()
    twin.step()
    pairs = list(zip(optimizer.param_groups, twin.param_groups, strict=True))
    mixes = [abs(float(a["scalars"][MIX] - b["scalars"][MIX])) for a, b in pairs]
    last_bit = LAST_BIT + max(mixes)
    stored = missed = 0
    for p, q, (old, terms) in zip(everyone(optimizer), everyone(twin), before, strict=True):
        mine, other = optimizer.state.get(p, {}), twin.state.get(q, {})
        assert list(mine) == list(other)
        if not mine:
            continue
        terms = terms + old.abs() + numbers(mine) + (0 if p.grad is None else p.grad.abs())
        same = torch.ones(p.shape, dtype=torch.bool)
        for name, scales in storage.SCALES.items():
            (a, b), pair = (x[name] for x in (mine, other)), (mine.get(scales), other.get(scales))
            apart = (in_quanta(a) - in_quanta(b)).abs()
            difference = (storage.decode(a, pair[0]) - storage.decode(b, pair[1])).abs()
            # Where m differs by a quantum, a v near 0 may differ by many of its own.
            assert ((apart <= 1) | (difference <= last_bit * terms) | ~same).all(), name
            same &= apart == 0
            stored, missed = stored + apart.numel(), missed + int(apart.count_nonzero())
            if pair[0] is not None:
                torch.testing.assert_close(*pair, rtol=1.01 * SCALE_BIT, atol=0.0)
        assert mine["step"] == other["step"]
        step = (p - old).abs().double()
        slack = 1e-3 * step + 2 * torch.finfo(p.dtype).eps * (p.abs() + step)
        assert ((p.double() - q.double()).abs() <= slack)[same].all(), "theta"
    assert missed <= MISSES * stored + 1
    for group, other in pairs:
        torch.testing.assert_close(group["scalars"], other["scalars"], rtol=1e-3, atol=1e-6)


def numbers(state: dict[str, Tensor] | None) -> Any:
    """Return an upper bound of |m_hat| + |v|."""
    if not state:
        return 0.0
    m, v = (storage.decode(state[k], state.get(storage.SCALES[k])) for k in ("exp_avg", "hidden"))
    return 10 * m.abs() + v.abs()


def in_quanta(x: Tensor) -> Tensor:
    """Return stored numbers as integers, neighbours one apart."""
    if x.dtype != torch.bfloat16:
        return x.int()
    bits = x.view(torch.int16).int()
    return torch.where(bits < 0, -(bits & 0x7FFF), bits)
