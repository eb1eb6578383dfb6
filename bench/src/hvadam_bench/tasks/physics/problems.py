"""The equations that networks are to solve, with the points that their residuals are taken at."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hvadam_bench.tasks._full_batch import FullBatchProblem
from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks._spec import Settings
from hvadam_bench.tasks.physics.equation import Equation, on_grid, problem, scattered
from hvadam_bench.tasks.physics.jets import jet

KAPPA = 0.05  # of the heat equation
WAVES = ((1, 1.0), (3, 0.5))  # of its start: k and the amplitude
NODES = 200  # of the quadrature; with 100 more the solution moves by less than 1e-12


def heat_pinn(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build the training of a perceptron on the heat equation: smooth, float64.

    u_t = κ u_xx on x and t in [0, 1], u = 0 at both ends and u(x, 0) = sin πx + sin(3πx)/2. The
    points inside are of one fixed draw, those of the edges evenly spaced.
    """
    rng, edge = np.random.default_rng(0), settings["edge"]
    inside = torch.from_numpy(rng.uniform(size=(settings["inside"], 2)))
    line, zero = torch.linspace(0, 1, edge, dtype=torch.float64), torch.zeros(edge).double()
    ends = [torch.stack([zero + x, line], 1) for x in (0, 1)]
    edges = torch.cat([torch.stack([line, zero], 1), *ends])
    return FullBatchProblem(
        lambda: tanh_mlp([2, *[settings["width"]] * settings["layers"], 1]),
        lambda network: heat_loss(network, inside, edges),
        len(inside) + len(edges),
        settings,
        seed,
    )


def heat_loss(network: Any, inside: Tensor, edges: Tensor) -> Tensor:
    """Return the mean squares of the residual and of the errors at the start and at the ends.

    A third of the edges are the start.
    """
    at = jet(network, inside, ["x", "t", "xx"])
    error = network(edges).squeeze(1) - heat_solution(edges)
    start, ends = error.split([len(edges) // 3, len(edges) - len(edges) // 3])
    residual = at["t"] - KAPPA * at["xx"]
    return residual.square().mean() + start.square().mean() + ends.square().mean()


def heat_solution(points: Tensor) -> Tensor:
    """Return u = Σ a sin(kπx) exp(-κk²π²t) at points (x, t)."""
    x, t = points.T
    waves = (
        a * torch.sin(k * math.pi * x) * torch.exp(-KAPPA * (k * math.pi) ** 2 * t)
        for k, a in WAVES
    )
    return torch.stack(list(waves)).sum(0)


def pinn(equation: str, settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build the training of a perceptron on an equation, by its name, at points of a grid."""
    solved = {
        "convection": lambda: convection(settings["speed"]),
        "reaction": lambda: reaction(settings["rate"]),
        "wave": lambda: wave(settings["speed"], settings["overtone"]),
    }[equation]()
    points = on_grid(solved, settings["grid"], settings["inside"], seed)
    return problem(solved, points, settings, seed)


def pinn_burgers(settings: Settings, seed: int, protocol: str) -> FullBatchProblem:
    """Build the training of a perceptron on Burgers' equation, at points anywhere."""
    equation = burgers(settings["viscosity"] / math.pi)
    points = scattered(equation, settings["inside"], settings["start"], settings["ends"], seed)
    return problem(equation, points, settings, seed)


def convection(speed: float) -> Equation:
    """Return convection: u_t + β u_x = 0 on x in [0, 2π], periodic, from sin x, with β = speed.

    u = sin(x - βt). The larger β, the more waves pass within t in [0, 1]. A network that has not
    found them sits near u = 0, which meets the equation and the ends, and fails at the start alone.
    """
    return Equation(
        low=0.0,
        high=2 * math.pi,
        wanted=("x", "t"),
        residual=lambda at: at["t"] + speed * at["x"],
        solution=lambda points: torch.sin(points[:, 0] - speed * points[:, 1]),
        periodic=True,
    )


def reaction(rate: float) -> Equation:
    """Return a reaction: u_t = ρ u (1 - u) on x in [0, 2π], periodic, with ρ = rate.

    It starts from h(x), a bell of width π/4 at x = π, so that u = h e^(ρt) / (h e^(ρt) + 1 - h). A
    network may fall to u = 0, which meets the equation and the ends, and fails at the start alone.
    """

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


def wave(speed: float, overtone: int) -> Equation:
    """Return a string's vibration: u_tt = c² u_xx on x in [0, 1], with c = speed, β = overtone.

    It is 0 at both ends and starts at rest from sin πx + sin(βπx)/2, so that
    u = sin(πx) cos(cπt) + sin(βπx) cos(cβπt) / 2, for a whole number β.
    """

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


def burgers(viscosity: float) -> Equation:
    """Return Burgers' equation: u_t + u u_x = ν u_xx on x in [-1, 1], with ν = viscosity.

    It is 0 at both ends and starts from -sin πx; a shock of width about ν forms at x = 0.
    """
    return Equation(
        low=-1.0,
        high=1.0,
        wanted=("x", "t", "xx"),
        residual=lambda at: at["t"] + at["u"] * at["x"] - viscosity * at["xx"],
        solution=lambda points: burgers_solution(points, viscosity),
    )


def burgers_solution(points: Tensor, viscosity: float, nodes: int = NODES) -> Tensor:
    """Return the solution of Burgers' equation at points (x, t) by quadrature.

    By Cole and Hopf u = -2ν φ_x / φ, where φ spreads by the heat equation from
    exp(-cos(πx) / (2πν)); so that with a normal η of variance 2νt

        u(x, t) = -E[sin(π(x - η)) f(x - η)] / E[f(x - η)],   f(y) = exp(-cos(πy) / (2πν)),

    and Gauss and Hermite's rule has both means.
    """
    roots, weights = map(torch.from_numpy, np.polynomial.hermite.hermgauss(nodes))
    x, t = points[:, :1], points[:, 1:]
    y = math.pi * (x - torch.sqrt(4 * viscosity * t) * roots)
    # f spans e^±50 and more: the greatest summand is made 1.
    exponents = weights.log() - torch.cos(y) / (2 * math.pi * viscosity)
    shares = torch.softmax(exponents, 1)
    return -(torch.sin(y) * shares).sum(1)
