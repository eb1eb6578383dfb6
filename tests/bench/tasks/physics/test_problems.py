"""The heat equation's solution and loss; Burgers' by quadrature, held to a spectral solver."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from made_derivatives import by_inputs
from scipy.integrate import solve_ivp

from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks.physics.equation import Equation, grid
from hvadam_bench.tasks.physics.problems import (
    KAPPA,
    burgers_solution,
    heat_loss,
    heat_solution,
)

WHERE = Equation(-1.0, 1.0, (), lambda at: at["u"], lambda points: points[:, 0])


def by_quadrature(viscosity: float, sizes: tuple[int, int], nodes: int = 200) -> np.ndarray:
    points = grid(WHERE, sizes)
    return burgers_solution(points.reshape(-1, 2), viscosity, nodes).reshape(sizes).numpy()


def by_sines(viscosity: float, count: int, times: np.ndarray) -> np.ndarray:
    """Solve for the sine series of u on [0, 1], where it is odd, as equations in time.

    Returns u at x = 1 / count, 2 / count, ..., for each of the times.
    """
    inner = np.arange(1, count)
    k = math.pi * inner
    waves = np.sin(np.outer(k, inner / count))  # its inverse is 2 / count times itself
    slopes = k * np.cos(np.outer(inner / count, k))

    def slope(_: float, c: np.ndarray) -> np.ndarray:
        return -2 / count * waves @ ((waves @ c) * (slopes @ c)) - viscosity * k**2 * c

    def jacobian(_: float, c: np.ndarray) -> np.ndarray:
        moved = (slopes @ c)[:, None] * waves + (waves @ c)[:, None] * slopes
        return -2 / count * waves @ moved - np.diag(viscosity * k**2)

    solved = solve_ivp(
        slope,
        (0, 1),
        -np.eye(count - 1)[0],  # -sin πx
        method="LSODA",
        jac=jacobian,
        t_eval=times,
        rtol=1e-10,
        atol=1e-12,
    )
    return waves @ solved.y


THIN = pytest.param(0.01, 512, marks=pytest.mark.slow)


@pytest.mark.parametrize(("viscosity", "count"), [(0.5, 32), (0.05, 128), THIN])
def test_two_solvers_agree(viscosity: float, count: int) -> None:
    assert distance(viscosity, count) < 1e-8


def test_two_solvers_agree_ever_better_with_more_waves() -> None:
    distances = [distance(0.05, count) for count in (32, 64, 128)]
    assert distances[0] > 10 * distances[1] > 100 * distances[2]


def distance(viscosity: float, count: int) -> float:
    """Return how far apart both solvers are, at worst."""
    quadrature = by_quadrature(viscosity / math.pi, (2 * count + 1, 6))
    spectral = by_sines(viscosity / math.pi, count, np.linspace(0, 1, 6))
    return float(np.abs(quadrature[count + 1 : -1] - spectral).max())


@pytest.mark.parametrize("viscosity", [0.5, 0.05, 0.01])
def test_the_solution_is_odd_keeps_its_mass_and_decays(viscosity: float) -> None:
    u = by_quadrature(viscosity / math.pi, (129, 21))
    np.testing.assert_allclose(u, -u[::-1], atol=1e-12)
    np.testing.assert_allclose(u.sum(0), 0, atol=1e-11)
    np.testing.assert_allclose(u[[0, 64, -1]], 0, atol=1e-12)
    assert (np.diff((u**2).sum(0)[5:]) < 0).all()  # after the shock has formed at about t = 0.3
    assert np.abs(u).max() <= 1 + 1e-12


@pytest.mark.parametrize("viscosity", [0.5, 0.05, 0.01])
def test_more_nodes_change_nothing(viscosity: float) -> None:
    few, usual, many = (by_quadrature(viscosity / math.pi, (65, 11), n) for n in (20, 200, 300))
    np.testing.assert_allclose(usual, many, rtol=0, atol=1e-12)
    assert np.abs(few - many).max() >= np.abs(usual - many).max()


def test_the_heat_solves_its_equation_and_meets_its_edges() -> None:
    at = by_inputs(heat_solution, torch.rand(50, 2, dtype=torch.float64))
    torch.testing.assert_close(at["t"], KAPPA * at["xx"])
    ends = torch.tensor([[x, t] for x in (0, 1) for t in (0, 0.3, 1)], dtype=torch.float64)
    assert heat_solution(ends).abs().max() < 1e-12
    x = torch.linspace(0, 1, 9, dtype=torch.float64)
    begun = torch.sin(torch.pi * x) + torch.sin(3 * torch.pi * x) / 2
    start = torch.stack([x, torch.zeros_like(x)], 1)
    torch.testing.assert_close(heat_solution(start), begun)


def test_the_loss_of_the_heat_is_the_sum_of_three_means() -> None:
    torch.manual_seed(0)
    network, points = tanh_mlp([2, 6, 1]).double(), torch.rand(35, 2, dtype=torch.float64)
    inside, start, ends = points.split([20, 5, 10])
    at = by_inputs(lambda inside: network(inside).squeeze(1), inside)
    residual = at["t"] - KAPPA * at["xx"]
    errors = [network(at).squeeze(1) - heat_solution(at) for at in (start, ends)]
    expected = sum((x**2).mean() for x in (residual, *errors))
    torch.testing.assert_close(heat_loss(network, inside, points[20:]), expected)
