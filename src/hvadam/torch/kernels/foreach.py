"""The multi-tensor kernel: torch's foreach calls over lists, traceable by ``torch.compile``.

Large tensors on a CPU are left to the loop: there is nothing to gain from lists.

Legend: see ``batch.py``; m_hat = m / bias1 and s_hat = s / bias2 are bias-corrected, dev_v and
dev_m are (g - v)² and (g - m)², ratio is the paper's η.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from hvadam.torch import devices
from hvadam.torch.kernels import loop, pieces, sums
from hvadam.torch.kernels.batch import LARGEST, Batch, Box, Columns, Tensors, as_scalar


def available() -> str | None:
    """Return None: this kernel runs everywhere."""
    return None


norm = loop.norm


# On a CPU lists of small tensors save calls, but a large one costs least in buffers that are kept
# from piece to piece; the two cross near this many elements.
SMALL = 4096


def takes_alone(theta: Tensor) -> bool:
    """Return whether a tensor is taken by itself; batches have tensors of one kind only."""
    on_cpu = theta.device.type == "cpu" and not torch.compiler.is_compiling()
    return on_cpu and theta.numel() >= SMALL


def accumulate(batches: Sequence[Batch[None]], dots: Tensor, wide: bool = True) -> None:
    """Count the step, update m and s, add the four dots of each scope."""
    alone, lists = _sorted(batches)
    loop.accumulate(alone, dots, wide)
    for batch in lists:
        batch.count_step()
        for part in pieces.parts(batch):
            work = part.open()
            _average(part, work)
            for i in range(len(work.m)):
                part.keep_average(i, work)
            dots[batch.scopes[0]] += _dots(part, work, wide).to(dots)


def measure(batches: Sequence[Batch[None]], mix: Tensor, feet: Tensor) -> None:
    """Add the squares of mix v + (1 - mix) m_hat, without moving v."""
    alone, lists = _sorted(batches)
    loop.measure(alone, mix, feet)
    for batch in lists:
        weight = 1.0 - mix[batch.scopes[0]].item()
        for part in pieces.parts(batch):
            work = part.open()
            m_hat = torch._foreach_div(work.m, part.bias_corrections()[0])
            moved = torch._foreach_lerp(work.v, m_hat, weight)
            feet[batch.scopes[0]] += sums.foot(_flat(moved)).to(feet)


def apply(batches: Sequence[Batch[None]], mix: Tensor, gain: Tensor) -> None:
    """Move v to mix v + (1 - mix) m_hat and theta by both steps."""
    alone, lists = _sorted(batches)
    loop.apply(alone, mix, gain)
    for batch in lists:
        home = devices.home(batch.tensors.theta[0].device)
        batch_mix, batch_gain = (x[batch.scopes[0]].to(home) for x in (mix, gain))
        along = batch.options.lr * batch.options.hidden_scale * as_scalar(batch_gain)
        box = batch.options.box(batch.options.lr)
        for part in pieces.parts(batch):
            _move(part, as_scalar(1.0 - batch_mix), along, box)


def _sorted(batches: Sequence[Batch[None]]) -> tuple[list[Batch[None]], list[Batch[None]]]:
    """Return batches of tensors to take one by one, and those to take as lists."""
    kinds: tuple[list[Batch[None]], list[Batch[None]]] = ([], [])
    for batch in batches:
        kinds[not takes_alone(batch.tensors.theta[0])].append(batch)
    return kinds


def _average(batch: Batch[None], work: Columns) -> None:
    """Update m and s."""
    o = batch.options
    m, v, s = work[2:5]
    g = _gradients(batch, m[0].dtype)
    if isinstance(o.beta1, Tensor):
        # Compiled by torch 2.13 lerp is wrong for 0-dim tensors and a weight of 0.5 or more.
        torch._foreach_mul_(m, o.beta1)
        _add(m, g, 1.0 - o.beta1)
    else:
        torch._foreach_lerp_(m, g, 1.0 - o.beta1)
    torch._foreach_mul_(s, o.beta2)
    if o.adam:
        _add_products(s, g, g, 1.0 - o.beta2)
    else:
        dev_v = torch._foreach_sub(g, v)
        torch._foreach_mul_(dev_v, dev_v)
        dev_m = torch._foreach_sub(g, m)
        torch._foreach_mul_(dev_m, dev_m)
        if isinstance(o.gamma, Tensor):  # 0 times a square that overflowed would be no number
            _add(dev_m, dev_v, o.gamma.clamp(min=torch.finfo(m[0].dtype).tiny))
        elif o.gamma:
            _add(dev_m, dev_v, o.gamma)
        _add_number(dev_m, o.eps)
        torch._foreach_clamp_max_(dev_m, LARGEST[m[0].dtype])
        ratio = torch._foreach_div(dev_v, dev_m)
        _add_products(s, ratio, dev_v, 1.0 - o.beta2)
        _add_number(s, o.eps)


def _dots(batch: Batch[None], work: Columns, wide: bool) -> Tensor:
    """Return the four dots, of one vector per operand: one call each for all tensors."""
    bias1, m, correction = batch.bias_corrections()[0], work.m, 1.0
    compiling = torch.compiler.is_compiling()
    if not compiling and isinstance(bias1[0], float) and all(x == bias1[0] for x in bias1):
        correction = 1.0 / bias1[0]  # after the sums, rather than in a pass
    else:
        m = torch._foreach_div(m, bias1)
    if compiling:  # torch.compile fuses sums with what is summed, tensor by tensor
        return torch.stack([sums.fused_dots(*x) for x in zip(work.v, m, strict=True)]).sum(0)
    v, m = _flat(work.v), torch.cat([x.reshape(-1) for x in m])  # a copy, which sums write to
    if wide:
        return sums.wide_dots(v.double(), m.double(), correction)
    return sums.dots(v, m, correction)


def _move(
    batch: Batch[None], weight: float | Tensor, along: float | Tensor, box: Box | None
) -> None:
    """Move v by a weight of m_hat, and theta by both steps, then into the box."""
    o = batch.options
    theta = batch.tensors.theta
    work = batch.open()
    m, v, s = work[2:5]
    bias1, bias2 = batch.bias_corrections()
    m_hat = torch._foreach_div(m, bias1)
    _mix(v, m_hat, weight)
    for i in range(len(v)):
        batch.keep_hidden(i, work)

    denominator = torch._foreach_div(s, bias2)
    torch._foreach_sqrt_(denominator)
    _add_number(denominator, o.eps)

    half = theta[0].dtype != m[0].dtype
    moved = [x.to(m[0].dtype) for x in theta] if half else theta
    if isinstance(o.decay, Tensor) or o.decay:
        torch._foreach_mul_(moved, 1.0 - o.lr * o.decay)
    if isinstance(o.lr, Tensor):
        _add(moved, torch._foreach_div(m_hat, denominator), -o.lr)
    elif o.lr:
        torch._foreach_addcdiv_(moved, m_hat, denominator, -o.lr)
    if isinstance(along, Tensor) or along:  # 0 leaves it alone, whatever v is
        _add(moved, v, -along)
    if box is not None:
        for x in moved:
            x.clamp_(*box)
    if half:
        torch._foreach_copy_(theta, moved)


def _mix(v: Tensors, m_hat: Tensors, weight: float | Tensor) -> None:
    """Move v by a weight of m_hat."""
    if not isinstance(weight, Tensor):
        torch._foreach_lerp_(v, m_hat, weight)
        return
    weight = weight.to(v[0].dtype)
    if not torch.compiler.is_compiling():
        torch._foreach_lerp_(v, m_hat, [weight.expand_as(x) for x in v])
        return
    # What lerp does, from the nearer end: few enough operations for inductor to keep them in one
    # loop with what reads v. More, and it makes a temporary of v's size.
    near = weight < 0.5
    share = torch.where(near, weight, weight - 1.0)
    pairs = zip(v, m_hat, strict=True)
    # Not copy_ one by one: so compiled, torch 2.13 does not write to 0-dim tensors.
    torch._foreach_copy_(v, [torch.where(near, x, y) + share * (y - x) for x, y in pairs])


def _flat(tensors: Tensors) -> Tensor:
    """Return tensors as one vector."""
    if len(tensors) == 1:
        return tensors[0].reshape(-1)
    return torch.cat([x.reshape(-1) for x in tensors])


def _gradients(batch: Batch[None], dtype: torch.dtype) -> list[Tensor]:
    """Return gradients in state dtype, scaled, negated and decayed as asked, never in place."""
    o = batch.options
    g = [x.to(dtype) for x in batch.tensors.g]
    factor = -o.factor if o.maximize else o.factor
    if isinstance(factor, Tensor) or factor != 1.0:
        g = torch._foreach_mul(g, factor)
    if isinstance(o.coupled_decay, Tensor):
        theta = torch._foreach_mul([x.to(dtype) for x in batch.tensors.theta], o.coupled_decay)
        g = torch._foreach_add(g, theta)
    elif o.coupled_decay:
        g = torch._foreach_add(g, [x.to(dtype) for x in batch.tensors.theta], alpha=o.coupled_decay)
    return list(g)


def _add(x: Tensors, y: Tensors, scale: float | Tensor) -> None:
    """Add scale * y to x."""
    if isinstance(scale, Tensor):
        torch._foreach_add_(x, torch._foreach_mul(y, scale.to(x[0].dtype)))
    else:
        torch._foreach_add_(x, y, alpha=scale)


def _add_number(x: Tensors, number: float | Tensor) -> None:
    """Add a number to every element of x."""
    if isinstance(number, Tensor):  # as a list: torch would read a single one
        torch._foreach_add_(x, [number.to(x[0].dtype)] * len(x))
    else:
        torch._foreach_add_(x, number)


def _add_products(x: Tensors, y: Tensors, z: Tensors, scale: float | Tensor) -> None:
    """Add scale * y * z to x."""
    if isinstance(scale, Tensor):
        _add(x, torch._foreach_mul(y, z), scale)
    else:
        torch._foreach_addcmul_(x, y, z, scale)
