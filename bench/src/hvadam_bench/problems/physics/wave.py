"""A string: u_tt = c² u_xx on x in [0, 1], 0 at both ends, at rest from sin πx + sin(βπx)/2.

u = sin(πx) cos(cπt) + sin(βπx) cos(cβπt) / 2, for a whole number β.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from hvadam_bench.problems.physics.equation import Equation


def wave(speed: float, overtone: int) -> Equation:
    """Return the equation with c = speed and β = overtone."""

    def solution(points: Tensor) -> Tensor:
        x, t = math.pi * points.T
        tone = torch.sin(x) * torch.cos(speed * t)
        return tone + torch.sin(overtone * x) * torch.cos(speed * overtone * t) / 2

    return Equation(
        low=0.0,
        high=1.0,
        wanted=("xx", "tt"),
        residual=lambda at: at["tt"] - speed**2 * at["xx"],
        solution=solution,
        at_rest=True,
    )
