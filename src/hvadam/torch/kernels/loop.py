"""The readable kernel: one tensor at a time, large ones in pieces that stay in cache.

Legend: see ``batch.py``; m_hat = m / bias1 and s_hat = s / bias2 are bias-corrected, dev_v and
dev_m are (g - v)² and (g - m)², ratio is the paper's η.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hvadam.torch.kernels.batch import Batch, Options, number

CHUNK = 1 << 17  # elements: enough to hide the cost of a call, few enough to stay in cache


class Piece(NamedTuple):
    """A tensor, or a part of one, as the kernel takes it."""

    theta: Tensor
    g: Tensor
    m: Tensor
    v: Tensor
    s: Tensor
    bias1: Any
    bias2: Any


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
        weight = number(1.0 - mix[batch.scopes[0]].to(device))
        scale = number(gain[batch.scopes[0]].to(device))
        scratch = _Scratch(batch.tensors.m[0].dtype)
        for piece in _pieces(batch):
            _apply_piece(piece, batch.options, weight, scale, *scratch.like(piece.m))


def _accumulate_batch(batch: Batch) -> Tensor:
    scratch, double = _Scratch(batch.tensors.m[0].dtype), _Scratch(torch.float64)
    dots: list[Tensor] = []
    for piece in _pieces(batch):
        _average(piece, batch.options, *scratch.like(piece.m))
        dots += _dots(piece, *double.like(piece.m))
    return torch.stack(dots).view(-1, 4).sum(0)


def _average(piece: Piece, o: Options, own: Tensor, dev_v: Tensor, q: Tensor) -> None:
    """m and s, with three buffers to work in."""
    theta, g, m, v, s, _, _ = piece
    if o.maximize or o.coupled_decay or g.dtype != m.dtype:
        g = own.copy_(g)
        if o.maximize:
            g.neg_()
        if o.coupled_decay:
            g.add_(theta, alpha=o.coupled_decay)

    m.lerp_(g, 1.0 - o.beta1)
    s.mul_(o.beta2)
    if o.adam:
        s.addcmul_(g, g, value=1.0 - o.beta2)
    else:
        torch.sub(g, v, out=dev_v).square_()
        torch.sub(g, m, out=q).square_()
        ratio = torch.div(dev_v, q.add_(dev_v, alpha=o.gamma).add_(o.eps), out=q)
        s.addcmul_(ratio, dev_v, value=1.0 - o.beta2).add_(o.eps)


def _dots(piece: Piece, d: Tensor, v: Tensor, m_hat: Tensor) -> list[Tensor]:
    """The four dots of a piece, with three float64 buffers to work in.

    The difference is taken in float64 too: rounded to float32 it would cost half the cosine's
    digits where v and m_hat are nearly parallel and the foot is near 0.
    """
    torch.sub(v.copy_(piece.v), m_hat.copy_(piece.m).div_(piece.bias1), out=d)
    d, v, m_hat = d.reshape(-1), v.reshape(-1), m_hat.reshape(-1)
    return [d.dot(d), d.dot(v), m_hat.dot(m_hat), v.dot(v)]


def _apply_piece(
    piece: Piece,
    o: Options,
    weight: float | Tensor,
    gain: float | Tensor,
    m_hat: Tensor,
    denominator: Tensor,
    own: Tensor,
) -> None:
    """v and theta, with three buffers to work in."""
    theta, _, m, v, s, bias1, bias2 = piece
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
    """Three buffers, kept from piece to piece: fresh memory would cost a fault for every page."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype
        self._buffers: list[Tensor] = []
        self._views: list[Tensor] = []

    def like(self, piece: Tensor) -> list[Tensor]:
        """The buffers in a piece's shape."""
        if not self._views or self._views[0].shape != piece.shape:
            size = piece.numel()
            if not self._buffers or self._buffers[0].numel() < size:
                self._buffers = [piece.new_empty(size, dtype=self._dtype) for _ in range(3)]
            self._views = [buffer[:size].view(piece.shape) for buffer in self._buffers]
        return self._views


def _pieces(batch: Batch) -> Iterator[Piece]:
    """The tensors of a batch, the large ones cut to CHUNK elements."""
    rows = zip(*batch.tensors[:5], *batch.bias_corrections(), strict=True)
    for *tensors, bias1, bias2 in rows:
        flat = _flat(tensors) if tensors[0].numel() > CHUNK else None
        if flat is None:
            yield Piece._make((*tensors, bias1, bias2))
        else:
            for chunks in zip(*(x.split(CHUNK) for x in flat), strict=True):
                yield Piece._make((*chunks, bias1, bias2))


def _flat(tensors: list[Tensor]) -> list[Tensor] | None:
    """The tensors as vectors over their memory, or None if they do not share one dense layout."""
    first = tensors[0]
    strides = first.stride()
    if any(x.stride() != strides for x in tensors[1:]):
        return None
    order = sorted(range(first.ndim), key=strides.__getitem__, reverse=True)
    if not first.permute(order).is_contiguous():
        return None
    return [x.permute(order).view(-1) for x in tensors]
