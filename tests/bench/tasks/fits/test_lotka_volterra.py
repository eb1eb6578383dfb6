"""The integrator of predators and prey, held to what is known of the equations."""

from __future__ import annotations

import math

import pytest
import torch

from hvadam_bench.tasks.fits.problems import Equation, integrate, truth


def invariant(path: torch.Tensor) -> torch.Tensor:
    """Return d x - c ln x + b y - a ln y, which no orbit changes."""
    a, b, c, d = truth()[0].exp()
    u, v = path[:, 0], path[:, 1]
    return d * u.exp() - c * u + b * v.exp() - a * v


def test_orbits_keep_their_invariant_to_the_fourth_order() -> None:
    drifts = []
    for count in (25, 50, 100):
        kept = invariant(integrate(*truth(), 10 / count, count))
        drifts.append((kept - kept[0]).abs().max().item())
    assert drifts[0] < 1e-2
    assert drifts[0] / drifts[1] > 10  # 16 in the limit
    assert drifts[1] / drifts[2] > 12


def test_the_equilibrium_stays() -> None:
    rates = truth()[0]
    a, b, c, d = rates.exp()
    start = torch.stack([c / d, a / b]).log()[:, None]
    path = integrate(rates, start, 0.4, 25)
    torch.testing.assert_close(path, start.expand(26, 2, 1), rtol=0, atol=1e-14)


def test_one_step_is_that_of_the_textbook() -> None:
    def slope(x: float, y: float) -> tuple[float, float]:
        a, b, c, d = truth()[0].exp().tolist()
        return a - b * math.exp(y), d * math.exp(x) - c

    length, (x, y) = 0.3, (0.2, -0.1)
    k1 = slope(x, y)
    k2 = slope(x + length / 2 * k1[0], y + length / 2 * k1[1])
    k3 = slope(x + length / 2 * k2[0], y + length / 2 * k2[1])
    k4 = slope(x + length * k3[0], y + length * k3[1])
    sums = [k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i] for i in range(2)]
    expected = [x + length / 6 * sums[0], y + length / 6 * sums[1]]
    start = torch.tensor([[x], [y]], dtype=torch.float64)
    found = integrate(truth()[0], start, length, 1)
    assert found[1, :, 0].tolist() == pytest.approx(expected, rel=1e-14)


def test_the_gradient_is_that_of_differences() -> None:
    rates, starts = truth()
    inputs = (rates.clone().requires_grad_(), starts.clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda r, s: integrate(r, s, 0.4, 5), inputs)


def test_guesses_lie_within_the_spread_and_depend_on_the_seed() -> None:
    torch.manual_seed(0)
    one, other = Equation(0.5), Equation(0.5)
    assert not torch.equal(one.rates, other.rates)
    for made, true in zip((one.rates, one.starts), truth(), strict=True):
        assert 0 < (made - true).abs().max() <= 0.5


def test_the_error_is_the_worst_relative_one() -> None:
    equation = Equation(0.0)
    assert equation.error() == 0
    with torch.no_grad():
        equation.rates.add_(torch.tensor([1.01, 0.95, 1.0, 1.02]).double().log())
    assert equation.error() == pytest.approx(0.05)
