"""The dots of v and m_hat: in float64, or in the dtype of the state, beside a measured foot.

Sums in float32 are of short rows, whose roundings are small and average out. They give the mix, and
the cosine unless it is near 0: ‖foot‖², a difference of squares, would then lose most digits.
Measured on the moved v it keeps all of them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from hvadam.torch import devices

ROW = 2048  # elements whose squares are summed one after the other, a few lanes apart
FEW = 64 * ROW
SMALLEST = 2.0**-80  # of the sums in float32: below it squares may be lost that would count
LONGEST = 8.0  # times ‖m̂‖², which ‖v-m̂‖² + ‖v‖² may be and still tell it


class Dots:
    """Sums the four dots of many pieces, whose rows are kept apart until all are there.

    Args:
        like: A tensor of the dtype and device of the state.
        elements: Of all pieces.
    """

    def __init__(self, like: Tensor, elements: int) -> None:
        self._wide = devices.widest(like.device)
        rows = elements // ROW
        self._d, self._v, self._products = like.new_empty(3, rows).unbind()  # norms; d times v
        # Where it can be looked at afterwards, ‖m̂‖² is told by the others.
        self._m = None if _is_checked(like) else like.new_empty(rows)
        self._filled = 0
        self._rest: list[Tensor] = []

    def add(self, v: Tensor, m: Tensor, correction: float | Tensor, buffer: Tensor) -> None:
        """Add a piece: v and m, flat, m_hat / m, and a buffer of their size to work in."""
        rows, rest = divmod(v.numel(), ROW)
        if rows:
            whole = [x[: rows * ROW] for x in (v, m, buffer)] if rest else [v, m, buffer]
            v_rows, m_rows, d_rows = (x.view(rows, ROW) for x in whole)
            add_scaled(v_rows, m_rows, -correction, out=d_rows)
            here = slice(self._filled, self._filled + rows)
            torch.linalg.vector_norm(d_rows, dim=1, out=self._d[here])
            if self._m is not None:
                torch.linalg.vector_norm(m_rows, dim=1, out=self._m[here]).mul_(correction)
            torch.linalg.vector_norm(v_rows, dim=1, out=self._v[here])
            products = torch.mul(d_rows, v_rows, out=d_rows)
            torch.sum(products, dim=1, out=self._products[here])
            self._filled += rows
        if rest:
            v_end, m_end = (x[rows * ROW :].to(self._wide, copy=True) for x in (v, m))
            self._rest.append(wide_dots(v_end, m_end, correction))

    def total(self) -> Tensor:
        """Return ‖v-m̂‖², <v-m̂,v>, ‖m̂‖², ‖v‖² in the widest dtype, off by some 1e-9 of themselves.

        Each row is off by a rounding; the more there are, the less is left of it.
        """
        dd, vv = self._squares(self._d), self._squares(self._v)
        dv = self._products[: self._filled].sum(dtype=self._wide)
        mm = vv - 2.0 * dv + dd if self._m is None else self._squares(self._m)
        return torch.stack([torch.stack([dd, dv, mm, vv]), *self._rest]).sum(0)

    def _squares(self, norms: Tensor) -> Tensor:
        """Return the sum of the squares of rows, of which these are the norms."""
        norms = norms[: self._filled].to(self._wide)
        return norms.dot(norms)


def may_be_narrow(like: Tensor, elements: int) -> bool:
    """Return whether the dots of so many elements may be summed in the dtype of the state.

    On a CPU those of few elements are taken in float64: their roundings would not average out.
    """
    return elements >= FEW or not _is_checked(like)


def are_in_range(dots: Tensor, like: Tensor) -> bool:
    """Return whether dots that were summed in the dtype of the state lost nothing that counts.

    Where v and m_hat are in range and their difference is not, the two are equal but for rounding.
    ‖m̂‖², a difference of the others, lost digits where v is much longer than m_hat.
    """
    if not _is_checked(like):
        return True
    dd, _, mm, vv = dots.tolist()
    return dd + vv < LONGEST * mm and _in_range(mm, vv)


def dots(v: Tensor, m: Tensor, correction: float | Tensor) -> Tensor:
    """Return the four dots of two flat vectors, m_hat being correction times m."""
    if may_be_narrow(v, v.numel()):
        narrow = Dots(v, v.numel())
        narrow.add(v, m, correction, torch.empty_like(v))
        found = narrow.total()
        if are_in_range(found, v):
            return found
    return wide_dots(v.double(), m.double(), correction)


def wide_dots(v: Tensor, m: Tensor, correction: float | Tensor) -> Tensor:
    """Return ‖v-m̂‖², <v-m̂,v>, ‖m̂‖², ‖v‖² of float64 vectors; m is written to.

    The difference is taken in float64 too: rounded to float32 it would cost half the cosine's
    digits where v and m_hat are nearly parallel and the foot is near 0.
    """
    m_hat_squared = m.dot(m) * correction * correction
    d = add_scaled(v, m, -correction, out=m)
    return torch.stack([d.dot(d), d.dot(v), m_hat_squared, v.dot(v)])


def fused_dots(v: Tensor, m_hat: Tensor) -> Tensor:
    """Return ‖v-m̂‖², <v-m̂,v>, ‖m̂‖², ‖v‖² in float64, as a compiler sums them in passing."""
    v, m_hat = v.double(), m_hat.double()
    d = v - m_hat
    return torch.stack([(x * y).sum() for x, y in ((d, d), (d, v), (m_hat, m_hat), (v, v))])


def foot(x: Tensor) -> Tensor:
    """Return ‖x‖² of a flat piece of the moved v; on a CPU in float64 if it leaves the range."""
    wide, whole = devices.widest(x.device), x.numel() - x.numel() % ROW
    norms = torch.linalg.vector_norm(x[:whole].view(whole // ROW, ROW), dim=1).to(wide)
    rest = x[whole:].to(wide)
    found = norms.dot(norms) + rest.dot(rest)
    if _is_checked(x) and not _in_range(found.item()):
        return x.double().square().sum()
    return found


def add_scaled(x: Tensor, y: Tensor, scale: float | Tensor, out: Tensor) -> Tensor:
    """Return x + scale y; out may be y, but not x."""
    if isinstance(scale, Tensor):
        return torch.mul(y, scale, out=out).add_(x)
    return torch.add(x, y, alpha=scale, out=out)


def add_to(x: Tensor, y: Tensor, scale: float | Tensor, buffer: Tensor) -> None:
    """Add scale y to x, with a buffer of their size and dtype to work in."""
    if isinstance(scale, Tensor):
        x.add_(torch.mul(y, scale, out=buffer))
    else:
        x.add_(y, alpha=scale)


def _in_range(*squares: float) -> bool:
    """Return whether sums of squares in float32 lost nothing that counts."""
    return all(SMALLEST <= x < math.inf for x in squares)


def _is_checked(x: Tensor) -> bool:
    """Return whether float64 may take over: from float32, and on a CPU, where reading is free."""
    return x.dtype == torch.float32 and x.device.type == "cpu"
