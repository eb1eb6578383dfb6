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
FEW = 32 * ROW
SMALLEST = 2.0**-80  # of the sums in float32: below it squares may be lost that would count


def dots(v: Tensor, m: Tensor, correction: float | Tensor, d: Tensor) -> Tensor:
    """Return ‖v-m̂‖², <v-m̂,v>, ‖m̂‖², ‖v‖² in the state's dtype, off by some 1e-9 of themselves.

    On a CPU those that leave the dtype's range are taken in float64 instead, and so are those of
    few elements, whose roundings do not average out.

    Args:
        v: The hidden vector, flat.
        m: Its m, flat.
        correction: m_hat / m.
        d: v - m_hat.
    """
    if v.numel() >= FEW or not _is_checked(v):
        m_hat_squared = squares(m) * (correction * correction)
        found = torch.stack([squares(d), products(d, v), m_hat_squared, squares(v)])
        if not _is_checked(v) or _in_range(found[0], found[2], found[3]):
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
    found = squares(x)
    if not _is_checked(x) or _in_range(found):
        return found
    return x.double().square().sum()


def squares(x: Tensor) -> Tensor:
    """Return the sum of squares of a flat tensor: of rows in its dtype, over rows in the widest."""
    whole, wide = x.numel() - x.numel() % ROW, devices.widest(x.device)
    rest = x[whole:].dot(x[whole:]).to(wide)
    if not whole:
        return rest
    norms = torch.linalg.vector_norm(x[:whole].view(-1, ROW), dim=1).to(wide)
    return norms.dot(norms) + rest


def products(x: Tensor, y: Tensor) -> Tensor:
    """Return the dot of two flat tensors, summed likewise."""
    whole, wide = x.numel() - x.numel() % ROW, devices.widest(x.device)
    rest = x[whole:].dot(y[whole:]).to(wide)
    if not whole:
        return rest
    rows = torch.linalg.vecdot(x[:whole].view(-1, ROW), y[:whole].view(-1, ROW))
    return rows.sum(dtype=wide) + rest


def add_scaled(x: Tensor, y: Tensor, scale: float | Tensor, out: Tensor) -> Tensor:
    """Return x + scale y; out may be y, but not x."""
    if isinstance(scale, Tensor):
        return torch.mul(y, scale, out=out).add_(x)
    return torch.add(x, y, alpha=scale, out=out)


def _in_range(*found: Tensor) -> bool:
    """Return whether sums of squares in float32 lost nothing that counts."""
    return all(SMALLEST <= x.item() < math.inf for x in found)


def _is_checked(x: Tensor) -> bool:
    """Return whether float64 may take over: from float32, and on a CPU, where reading is free."""
    return x.dtype == torch.float32 and x.device.type == "cpu"
