"""The readable kernel: one tensor at a time, large ones in pieces that stay in cache.

Legend: see ``batch.py``; m_hat = m / bias1 and s_hat = s / bias2 are bias-corrected, dev_v and
dev_m are (g - v)² and (g - m)², ratio is the paper's η.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from hvadam.torch.kernels.batch import Batch, Options, number

CHUNK = 1 << 16  # elements; five state-sized arrays and the scratch of one chunk fit a 2 MB cache


def available() -> str | None:
    """It always is."""
    return None


def accumulate(batches: Sequence[Batch]) -> Tensor:
    """Update m and s; return the four dots of each batch."""
    return torch.stack([_accumulate_batch(batch) for batch in batches])


def apply(batches: Sequence[Batch], mix: Sequence[Tensor], gain: Sequence[Tensor]) -> None:
    """Move v to mix v + (1 - mix) m_hat and theta by both steps."""
    for batch, batch_mix, batch_gain in zip(batches, mix, gain, strict=True):
        weight = number(1.0 - batch_mix)
        gain_value = number(batch_gain)
        scratch = _Scratch(batch, 3)
        for theta, _, m, v, s, bias1, bias2 in _pieces(batch):
            _apply_piece(
                theta, m, v, s, bias1, bias2, weight, gain_value, batch.options, scratch.like(m)
            )


def _accumulate_batch(batch: Batch) -> Tensor:
    scratch = _Scratch(batch, 3)
    double = _Scratch(batch, 3, torch.float64)
    dots = torch.zeros(4, dtype=torch.float64, device=batch.m[0].device)
    for theta, g, m, v, s, bias1, _ in _pieces(batch):
        dots += _accumulate_piece(
            theta, g, m, v, s, bias1, batch.options, scratch.like(m), double.like(m)
        )
    return dots


def _accumulate_piece(
    theta: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    s: Tensor,
    bias1: float | Tensor,
    o: Options,
    scratch: list[Tensor],
    double: list[Tensor],
) -> Tensor:
    own, dev_v, dev_m = scratch
    if o.maximize or o.coupled_decay or g.dtype != m.dtype:
        g = own.copy_(g)
        if o.maximize:
            g.neg_()
        if o.coupled_decay:
            g.add_(theta, alpha=o.coupled_decay)

    m.lerp_(g, 1.0 - o.beta1)
    if o.adam:
        s.mul_(o.beta2).addcmul_(g, g, value=1.0 - o.beta2)
    else:
        torch.sub(g, v, out=dev_v).square_()
        torch.sub(g, m, out=dev_m).square_()
        ratio = torch.div(dev_v, dev_m.add_(dev_v, alpha=o.gamma).add_(o.eps), out=dev_m)
        s.mul_(o.beta2).addcmul_(ratio, dev_v, value=1.0 - o.beta2).add_(o.eps)

    # The difference is taken in float64 too: rounded to float32 it would cost half the cosine's
    # digits where v and m_hat are nearly parallel and the foot is near 0.
    d, v64, m64 = double
    torch.sub(v64.copy_(v), m64.copy_(torch.div(m, bias1, out=dev_m)), out=d)
    d, v64, m64 = d.reshape(-1), v64.reshape(-1), m64.reshape(-1)
    return torch.stack([d.dot(d), d.dot(v64), m64.dot(m64), v64.dot(v64)])


def _apply_piece(
    theta: Tensor,
    m: Tensor,
    v: Tensor,
    s: Tensor,
    bias1: float | Tensor,
    bias2: float | Tensor,
    weight: float | Tensor,
    gain: float | Tensor,
    o: Options,
    scratch: list[Tensor],
) -> None:
    m_hat, denominator, own = scratch
    torch.div(m, bias1, out=m_hat)
    v.lerp_(m_hat, weight.to(v.dtype) if isinstance(weight, Tensor) else weight)
    torch.div(s, bias2, out=denominator).sqrt_().add_(o.eps)

    moved = theta if theta.dtype == m.dtype else own.copy_(theta)
    if o.decay:
        moved.mul_(1.0 - o.lr * o.decay)
    if isinstance(o.lr, Tensor):
        moved.sub_(m_hat.div_(denominator).mul_(o.lr))
    else:
        moved.addcdiv_(m_hat, denominator, value=-o.lr)
    if o.hidden_scale:
        scale = o.lr * o.hidden_scale * gain
        if isinstance(scale, Tensor):
            moved.sub_(torch.mul(v, scale, out=denominator))
        else:
            moved.add_(v, alpha=-scale)
    if o.low is not None:
        moved.clamp_(o.low, o.high)
    if moved is not theta:
        theta.copy_(moved)


class _Scratch:
    """Buffers for one batch, allocated once: fresh memory would cost a page fault per page."""

    def __init__(self, batch: Batch, count: int, dtype: torch.dtype | None = None) -> None:
        first = batch.m[0]
        size = min(CHUNK, max(m.numel() for m in batch.m))
        self._dtype = dtype or first.dtype
        self._buffers = [first.new_empty(size, dtype=self._dtype) for _ in range(count)]

    def like(self, piece: Tensor) -> list[Tensor]:
        """Buffers of a piece's shape."""
        if piece.numel() > self._buffers[0].numel():  # odd strides: taken whole, not in chunks
            return [torch.empty_like(piece, dtype=self._dtype) for _ in self._buffers]
        return [buffer[: piece.numel()].view(piece.shape) for buffer in self._buffers]


def _pieces(batch: Batch) -> Iterator[tuple]:
    """Each tensor of the batch as (theta, g, m, v, s, bias1, bias2), cut to CHUNK elements."""
    rows = zip(*batch[:7], strict=True)
    for *tensors, bias1, bias2 in rows:
        flat = _flat(tensors)
        if flat is None:
            yield *tensors, bias1, bias2
            continue
        for chunks in zip(*(t.split(CHUNK) for t in flat), strict=True):
            yield *chunks, bias1, bias2


def _flat(tensors: list[Tensor]) -> list[Tensor] | None:
    """The tensors as vectors over their memory, or None if they do not share one dense layout."""
    first = tensors[0]
    strides = first.stride()
    if any(t.stride() != strides for t in tensors[1:]):
        return None
    order = sorted(range(first.ndim), key=strides.__getitem__, reverse=True)
    if not first.permute(order).is_contiguous():
        return None
    return [t.permute(order).view(-1) for t in tensors]
