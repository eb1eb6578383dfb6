"""The heat equation as a physics-informed network has it: residuals at points, no grid.

u_t = κ u_xx on x and t in [0, 1], u = 0 at both ends and u(x, 0) = sin πx + sin(3πx)/2, so that
u = Σ a sin(kπx) exp(-κk²π²t). The loss is the mean squared residual plus the mean squared errors at
the start and at the ends, equally weighted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hvadam_bench.tasks.physics.jets import jet

KAPPA = 0.05
WAVES = ((1, 1.0), (3, 0.5))  # k and its amplitude


class Points(NamedTuple):
    """Where the loss looks: (x, t) inside, at t = 0, and at both ends; always the same."""

    inside: Tensor
    start: Tensor
    ends: Tensor

    @classmethod
    def draw(cls, inside: int, edge: int) -> Points:
        """Draw points inside by a fixed seed; those of the edges are evenly spaced."""
        rng = np.random.default_rng(0)
        line, zero = torch.linspace(0, 1, edge, dtype=torch.float64), torch.zeros(edge).double()
        ends = [torch.stack([zero + x, line], 1) for x in (0, 1)]
        return cls(
            torch.from_numpy(rng.uniform(size=(inside, 2))),
            torch.stack([line, zero], 1),
            torch.cat(ends),
        )


def solution(points: Tensor) -> Tensor:
    """Return the exact u at points (x, t)."""
    x, t = points.T
    waves = (
        a * torch.sin(k * math.pi * x) * torch.exp(-KAPPA * (k * math.pi) ** 2 * t)
        for k, a in WAVES
    )
    return torch.stack(list(waves)).sum(0)


def loss(network: nn.Sequential, points: Points) -> Tensor:
    """Return the loss of a tanh perceptron from (x, t) to u."""
    at = jet(network, points.inside, ["x", "t", "xx"])
    edges = torch.cat([points.start, points.ends])
    error = network(edges).squeeze(1) - solution(edges)
    start, ends = error.split([len(points.start), len(points.ends)])
    residual = at["t"] - KAPPA * at["xx"]
    return residual.square().mean() + start.square().mean() + ends.square().mean()
