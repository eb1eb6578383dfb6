"""Reaction: u_t = ρ u (1 - u) on x in [0, 2π], periodic, from h(x), a bell of width π/4 at x = π.

u = h e^(ρt) / (h e^(ρt) + 1 - h). A network may fall to u = 0, which meets the equation and the
ends, and fails at the start alone.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from hvadam_bench.problems.physics.equation import Equation


def reaction(rate: float) -> Equation:
    """Return the equation with ρ = rate."""

    def solution(points: Tensor) -> Tensor:
        x, t = points.T
        bell = torch.exp(-((x - math.pi) ** 2) / (2 * (math.pi / 4) ** 2))
        grown = bell * torch.exp(rate * t)
        return grown / (grown + 1 - bell)

    return Equation(
        low=0.0,
        high=2 * math.pi,
        wanted=("t",),
        residual=lambda at: at["t"] - rate * at["u"] * (1 - at["u"]),
        solution=solution,
        periodic=True,
    )
