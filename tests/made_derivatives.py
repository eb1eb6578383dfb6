"""Derivatives of a function of (x, t) by automatic differentiation, to judge others by."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def by_inputs(function: Callable[[Tensor], Tensor], points: Tensor) -> dict[str, Tensor]:
    """Return the function at points, one a row, with its first and second derivatives."""
    points = points.clone().requires_grad_()
    u = function(points)
    x, t = slopes(u, points).T
    return {"u": u, "x": x, "t": t, "xx": slopes(x, points)[:, 0], "tt": slopes(t, points)[:, 1]}


def slopes(u: Tensor, points: Tensor) -> Tensor:
    """Return the derivatives of each value by its own point."""
    [found] = torch.autograd.grad(u.sum(), points, create_graph=True, materialize_grads=True)
    return found
