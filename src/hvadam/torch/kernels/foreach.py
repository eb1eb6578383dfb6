"""The multi-tensor kernel: torch's foreach calls over lists, traceable by ``torch.compile``.

Legend: see ``batch.py``; m_hat = m / bias1 and s_hat = s / bias2 are bias-corrected, dev_v and
dev_m are (g - v)² and (g - m)², ratio is the paper's η.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from hvadam.torch.kernels.batch import Batch, number

Tensors: TypeAlias = list[Tensor] | tuple[Tensor, ...]


def available() -> str | None:
    """It always is."""
    return None


def accumulate(batches: Sequence[Batch], dots: Tensor) -> None:
    """Count the step, update m and s, add the four dots of each scope."""
    for batch in batches:
        batch.count_step()
        dots[batch.scopes[0]] += _accumulate_batch(batch).to(dots.device)


def apply(batches: Sequence[Batch], mix: Tensor, gain: Tensor) -> None:
    """Move v to mix v + (1 - mix) m_hat and theta by both steps."""
    for batch in batches:
        device = batch.tensors.theta[0].device
        batch_mix, batch_gain = (x[batch.scopes[0]].to(device) for x in (mix, gain))
        _apply_batch(batch, number(1.0 - batch_mix), number(batch_gain))


def _accumulate_batch(batch: Batch) -> Tensor:
    o = batch.options
    _, _, m, v, s, _ = batch.tensors
    g = _gradients(batch)

    # Not lerp: compiled by torch 2.13 it is wrong for 0-dim tensors and a weight of 0.5 or more.
    torch._foreach_mul_(m, o.beta1)
    torch._foreach_add_(m, g, alpha=1.0 - o.beta1)
    torch._foreach_mul_(s, o.beta2)
    if o.adam:
        torch._foreach_addcmul_(s, g, g, 1.0 - o.beta2)
    else:
        dev_v = torch._foreach_sub(g, v)
        torch._foreach_mul_(dev_v, dev_v)
        dev_m = torch._foreach_sub(g, m)
        torch._foreach_mul_(dev_m, dev_m)
        torch._foreach_add_(dev_m, dev_v, alpha=o.gamma)
        torch._foreach_add_(dev_m, o.eps)
        ratio = torch._foreach_div(dev_v, dev_m)
        torch._foreach_addcmul_(s, ratio, dev_v, 1.0 - o.beta2)
        torch._foreach_add_(s, o.eps)

    # One float64 vector per operand: the dots then take one call each, however many tensors. The
    # difference is taken in float64 too: rounded to float32 it would cost half the cosine's digits
    # where v and m_hat are nearly parallel and the foot is near 0.
    m_hat = _flat_double(torch._foreach_div(m, batch.bias_corrections()[0]))
    hidden = _flat_double(v)
    d = hidden - m_hat
    return torch.stack([d.dot(d), d.dot(hidden), m_hat.dot(m_hat), hidden.dot(hidden)])


def _apply_batch(batch: Batch, weight: float | Tensor, gain: float | Tensor) -> None:
    o = batch.options
    theta, _, m, v, s, _ = batch.tensors
    bias1, bias2 = batch.bias_corrections()
    m_hat = torch._foreach_div(m, bias1)
    if isinstance(weight, Tensor):
        weight = weight.to(m[0].dtype)
        torch._foreach_lerp_(v, m_hat, [weight.expand_as(x) for x in v])
    else:
        torch._foreach_lerp_(v, m_hat, weight)

    denominator = torch._foreach_div(s, bias2)
    torch._foreach_sqrt_(denominator)
    torch._foreach_add_(denominator, o.eps)

    half = theta[0].dtype != m[0].dtype
    moved = [x.to(m[0].dtype) for x in theta] if half else theta
    if o.decay:
        torch._foreach_mul_(moved, 1.0 - o.lr * o.decay)
    torch._foreach_div_(m_hat, denominator)
    _subtract(moved, m_hat, o.lr)
    if o.hidden_scale:
        _subtract(moved, v, o.lr * o.hidden_scale * gain)
    if o.low is not None:
        for x in moved:
            x.clamp_(o.low, o.high)
    if half:
        torch._foreach_copy_(theta, moved)


def _flat_double(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([x.reshape(-1).double() for x in tensors])


def _gradients(batch: Batch) -> list[Tensor]:
    """The gradients in state dtype, negated and decayed as asked, never in place."""
    o = batch.options
    dtype = batch.tensors.m[0].dtype
    g = [x.to(dtype) for x in batch.tensors.g]
    if o.maximize:
        g = torch._foreach_neg(g)
    if o.coupled_decay:
        g = torch._foreach_add(g, [x.to(dtype) for x in batch.tensors.theta], alpha=o.coupled_decay)
    return list(g)


def _subtract(theta: Tensors, step: Tensors, scale: float | Tensor) -> None:
    """theta -= scale * step."""
    if isinstance(scale, Tensor):
        torch._foreach_sub_(theta, torch._foreach_mul(step, scale.to(theta[0].dtype)))
    else:
        torch._foreach_add_(theta, step, alpha=-scale)
