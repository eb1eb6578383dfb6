"""Burgers' equation by quadrature, held to a spectral solver and to what must be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.fft import dst, idct, idst
from scipy.integrate import solve_ivp

from hvadam_bench.problems.physics.burgers import solution
from hvadam_bench.problems.physics.equation import Equation, grid

WHERE = Equation(-1.0, 1.0, (), lambda at: at["u"], lambda points: points[:, 0])


def by_quadrature(viscosity: float, sizes: tuple[int, int], nodes: int = 200) -> np.ndarray:
    points = grid(WHERE, sizes)
    return solution(points.reshape(-1, 2), viscosity, nodes).reshape(sizes).numpy()


def by_sines(viscosity: float, count: int, times: np.ndarray) -> np.ndarray:
    """Solve for the sine series of u on [0, 1], where it is odd, as equations in time.

    Returns u at x = 1 / count, 2 / count, ..., for each of the times.
    """
    k = math.pi * np.arange(1, count)
    x = np.arange(1, count) / count

    def slope(_: float, c: np.ndarray) -> np.ndarray:
        u = idst(c, type=1)
        # u_x = Σ k c cos(kx), by a cosine transform over both ends, of which the inside is kept.
        u_x = idct(np.concatenate([[0], k * c, [0]]), type=1)[1:-1]
        return -dst(u * u_x, type=1) - viscosity * k**2 * c

    solved = solve_ivp(
        slope,
        (0, 1),
        dst(-np.sin(math.pi * x), type=1),
        method="LSODA",
        t_eval=times,
        rtol=1e-10,
        atol=1e-10,
    )
    return idst(solved.y.T, type=1).T


@pytest.mark.parametrize(("viscosity", "count"), [(0.5, 32), (0.05, 128)])
def test_two_solvers_agree(viscosity: float, count: int) -> None:
    quadrature = by_quadrature(viscosity / math.pi, (2 * count + 1, 6))
    spectral = by_sines(viscosity / math.pi, count, np.linspace(0, 1, 6))
    np.testing.assert_allclose(quadrature[count + 1 : -1], spectral, atol=1e-6)


@pytest.mark.slow
def test_two_solvers_agree_on_the_thin_shock() -> None:
    quadrature = by_quadrature(0.01 / math.pi, (2049, 6))
    spectral = by_sines(0.01 / math.pi, 1024, np.linspace(0, 1, 6))
    np.testing.assert_allclose(quadrature[1025:-1], spectral, atol=1e-5)


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
