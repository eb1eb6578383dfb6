"""Convection: u_t + β u_x = 0 on x in [0, 2π], periodic, from sin x; u = sin(x - βt).

The larger β, the more waves pass within t in [0, 1]. A network that has not found them sits near
u = 0, which meets the equation and the ends, and fails at the start alone.
"""

from __future__ import annotations

import math

import torch

from hvadam_bench.problems.physics.equation import Equation


def convection(speed: float) -> Equation:
    """Return the equation with β = speed."""
    return Equation(
        low=0.0,
        high=2 * math.pi,
        wanted=("x", "t"),
        residual=lambda at: at["t"] + speed * at["x"],
        solution=lambda points: torch.sin(points[:, 0] - speed * points[:, 1]),
        periodic=True,
    )
