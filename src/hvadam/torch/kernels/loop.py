"""The readable kernel: one tensor at a time, large ones in pieces.

Legend: see ``batch.py``; m_hat = m / bias1 and s_hat = s / bias2 are bias-corrected, dev_v and
dev_m are (g - v)² and (g - m)², ratio is the paper's η.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hvadam.torch import devices
from hvadam.torch.gradients import squared_norm
from hvadam.torch.kernels import pieces, sums
from hvadam.torch.kernels.batch import LARGEST, Batch, Box, Columns, Options, as_scalar


class Piece(NamedTuple):
    """A tensor, or a part of one, with its state and bias corrections."""

    theta: Tensor
    g: Tensor
    m: Tensor
    v: Tensor
    s: Tensor
    bias1: Any
    bias2: Any
    eps: Tensor  # 0-dim: as a call's first operand it is added in passing, not in a pass
    gamma: Tensor  # likewise


class Move(NamedTuple):
    """A move of v and theta of all tensors in a batch."""

    weight: float | Tensor  # of m_hat in v
    along: float | Tensor  # v
    options: Options
    box: Box | None  # to project onto


def available() -> str | None:
    """Return None: this kernel runs everywhere."""
    return None


def norm(batches: Sequence[Batch[None]], total: Tensor) -> None:
    """Add the squares of the gradients."""
    for batch in batches:
        total += squared_norm(batch.tensors.g).to(total.device)


def accumulate(batches: Sequence[Batch[None]], dots: Tensor, wide: bool = True) -> None:
    """Count the step, update m and s, add the four dots of each scope."""
    for batch in batches:
        batch.count_step()
        scratch = _Scratch(batch, 3)
        elements = sum(theta.numel() for theta in batch.tensors.theta)
        narrow = double = None
        if not wide and sums.may_be_narrow(scratch.eps, elements):
            narrow = sums.Dots(scratch.eps, elements)
        else:
            double = _Scratch(batch, 2, torch.float64)
        found: list[Tensor] = []
        for part in pieces.parts(batch):
            work = part.open()
            for i, piece in _rows(part, work, scratch):
                buffers = scratch.like(piece.m)
                _average(piece, batch.options, *buffers)
                part.keep_average(i, work)
                if narrow is not None:
                    v, m = piece.v.reshape(-1), piece.m.reshape(-1)
                    narrow.add(v, m, 1.0 / piece.bias1, buffers[0].view(-1))
                elif double is not None:
                    found.append(_wide_dots(piece, double))
        if narrow is not None:
            found = [narrow.total()]
            if not sums.are_in_range(found[0], scratch.eps):
                double = _Scratch(batch, 2, torch.float64)
                again = (_rows(part, part.open(), scratch) for part in pieces.parts(batch))
                found = [_wide_dots(piece, double) for rows in again for _, piece in rows]
        _add(found, dots[batch.scopes[0]])


def measure(batches: Sequence[Batch[None]], mix: Tensor, feet: Tensor) -> None:
    """Add the squares of mix v + (1 - mix) m_hat, without moving v."""
    for batch in batches:
        scratch = _Scratch(batch, 1)
        weight = 1.0 - mix[batch.scopes[0]].item()
        found: list[Tensor] = []
        for part in pieces.parts(batch):
            work = part.open()
            for _, piece in _rows(part, work, scratch):
                (buffer,) = scratch.like(piece.m)
                m_hat = torch.div(piece.m, piece.bias1, out=buffer)
                moved = torch.lerp(piece.v, m_hat, weight, out=buffer)
                found.append(sums.foot(moved.view(-1)))
        _add(found, feet[batch.scopes[0]])


def apply(batches: Sequence[Batch[None]], mix: Tensor, gain: Tensor) -> None:
    """Move v to mix v + (1 - mix) m_hat and theta by both steps."""
    for batch in batches:
        home, o = devices.home(batch.tensors.theta[0].device), batch.options
        weight = as_scalar(1.0 - mix[batch.scopes[0]].to(home))
        along = o.lr * o.hidden_scale * as_scalar(gain[batch.scopes[0]].to(home))
        move = Move(weight, along, o, o.box(o.lr))
        scratch = _Scratch(batch, 2)
        for part in pieces.parts(batch):
            _move(part, move, scratch)


def _move(batch: Batch[None], move: Move, scratch: _Scratch) -> None:
    """Move v and theta of each tensor."""
    work = batch.open()
    for i, piece in _rows(batch, work, scratch):
        buffers = scratch.like(piece.m)
        piece.v.mul_(1.0 - move.weight)  # and not by lerp: m_hat would be one more array
        sums.add_to(piece.v, piece.m, move.weight / piece.bias1, buffers[0])
        batch.keep_hidden(i, work)
        _move_theta(piece, move, *buffers)


def _average(piece: Piece, o: Options, own: Tensor, dev_v: Tensor, from_m: Tensor) -> None:
    """Update m and s, with three buffers to work in."""
    theta, g, m, v, s, _, _, eps, gamma = piece
    factor = -o.factor if o.maximize else o.factor
    if isinstance(factor, Tensor) or factor != 1.0 or o.coupled_decay or g.dtype != m.dtype:
        g = own.copy_(g)
        if isinstance(factor, Tensor) or factor != 1.0:
            g.mul_(factor)
        if o.coupled_decay:
            g.add_(theta, alpha=o.coupled_decay)

    m.lerp_(g, 1.0 - o.beta1)
    if o.adam:
        s.mul_(o.beta2).addcmul_(g, g, value=1.0 - o.beta2)
    else:
        torch._C._nn.mse_loss(g, v, 0, out=dev_v)  # pyright: ignore[reportAttributeAccessIssue]
        torch.sub(g, m, out=from_m)
        dev_m = torch.addcmul(eps, from_m, from_m, out=from_m).clamp_(max=LARGEST[m.dtype])
        inverse = torch.addcdiv(gamma, dev_m, dev_v, out=from_m)  # of the ratio: inf where it is 0
        torch.add(eps, s, alpha=o.beta2, out=s).addcdiv_(dev_v, inverse, value=1.0 - o.beta2)


def _wide_dots(piece: Piece, double: _Scratch) -> Tensor:
    """Return the four dots of a piece in float64, with two such buffers."""
    v, m = double.like(piece.m)
    v, m = v.copy_(piece.v).view(-1), m.copy_(piece.m).view(-1)
    return sums.wide_dots(v, m, 1.0 / piece.bias1)


def _add(found: list[Tensor], total: Tensor) -> None:
    """Add what was found piece by piece to a total, in its dtype."""
    if found:
        total += torch.stack(found).to(total).sum(0)


def _move_theta(piece: Piece, move: Move, denominator: Tensor, own: Tensor) -> None:
    """Take both steps, with two buffers to work in."""
    theta, _, m, v, s, bias1, bias2, eps, _ = piece
    _, along, o, box = move
    moved = theta if theta.dtype == m.dtype else own.copy_(theta)
    if o.decay:
        moved.mul_(1.0 - o.lr * o.decay)
    root = torch.rsqrt(s, out=denominator).reciprocal_()  # on CPUs in less time than torch.sqrt
    sums.add_scaled(eps, root, 1.0 / bias2**0.5, out=denominator)
    if isinstance(o.lr, Tensor) or o.lr:
        rate = o.lr / bias1
        if isinstance(rate, Tensor):
            moved.sub_(torch.div(m, denominator, out=denominator).mul_(rate))
        else:
            moved.addcdiv_(m, denominator, value=-rate)
    if isinstance(along, Tensor) or along:
        sums.add_to(moved, v, -along, denominator)
    if box is not None:
        moved.clamp_(*box)
    if moved is not theta:
        theta.copy_(moved)


class _Scratch:
    """Buffers kept from piece to piece: fresh memory would cost a fault for every page.

    Args:
        batch: What they are for.
        count: How many.
        dtype: Theirs; by default the one that the batch is computed in.
    """

    def __init__(self, batch: Batch[None], count: int, dtype: torch.dtype | None = None) -> None:
        theta = batch.tensors.theta[0]
        self._count = count
        self._dtype = dtype or torch.promote_types(theta.dtype, torch.float32)
        self._buffers: list[Tensor] = []
        self._views: list[Tensor] = []
        o = batch.options
        self.eps, self.gamma = (theta.new_full((), x, dtype=self._dtype) for x in (o.eps, o.gamma))

    def like(self, piece: Tensor) -> list[Tensor]:
        """Return the buffers in a piece's shape."""
        if not self._views or self._views[0].shape != piece.shape:
            size = piece.numel()
            if not self._buffers or self._buffers[0].numel() < size:
                empty = (piece.new_empty(size, dtype=self._dtype) for _ in range(self._count))
                self._buffers = list(empty)
            self._views = [buffer[:size].view(piece.shape) for buffer in self._buffers]
        return self._views


def _rows(batch: Batch[None], work: Columns, scratch: _Scratch) -> Iterator[tuple[int, Piece]]:
    """Yield the tensors of a batch with their positions."""
    rows = zip(*work[:5], *batch.bias_corrections(), strict=True)
    for i, (*tensors, bias1, bias2) in enumerate(rows):
        yield i, Piece._make((*tensors, bias1, bias2, scratch.eps, scratch.gamma))
