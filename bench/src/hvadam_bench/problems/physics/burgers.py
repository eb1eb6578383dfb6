"""Burgers' equation: u_t + u u_x = ν u_xx on x in [-1, 1], 0 at both ends, from -sin πx.

A shock of width about ν forms at x = 0. By Cole and Hopf u = -2ν φ_x / φ, where φ spreads by the
heat equation from exp(-cos(πx) / (2πν)); so that with a normal η of variance 2νt

    u(x, t) = -E[sin(π(x - η)) f(x - η)] / E[f(x - η)],   f(y) = exp(-cos(πy) / (2πν)),

and Gauss and Hermite's rule has both means.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from hvadam_bench.problems.physics.equation import Equation

NODES = 200  # of the quadrature; with 100 more the solution moves by less than 1e-12


def burgers(viscosity: float) -> Equation:
    """Return the equation with ν = viscosity."""
    return Equation(
        low=-1.0,
        high=1.0,
        wanted=("x", "t", "xx"),
        residual=lambda at: at["t"] + at["u"] * at["x"] - viscosity * at["xx"],
        solution=lambda points: solution(points, viscosity),
    )


def solution(points: Tensor, viscosity: float, nodes: int = NODES) -> Tensor:
    """Return u at points (x, t) by quadrature."""
    roots, weights = map(torch.from_numpy, np.polynomial.hermite.hermgauss(nodes))
    x, t = points[:, :1], points[:, 1:]
    y = math.pi * (x - torch.sqrt(4 * viscosity * t) * roots)
    # f spans e^±50 and more: the greatest summand is made 1.
    exponents = weights.log() - torch.cos(y) / (2 * math.pi * viscosity)
    shares = torch.softmax(exponents, 1)
    return -(torch.sin(y) * shares).sum(1)
