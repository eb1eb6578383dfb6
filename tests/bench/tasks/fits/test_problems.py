"""The fits: their data, and what they measure where that is known."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from made_problems import smoke

from hvadam_bench import tasks
from hvadam_bench.tasks.fits.problems import (
    Equation,
    OnlineRegressionProblem,
    integrate,
    low_rank_matrix,
    seen_entries,
    spirals,
    truth,
    waves,
)

FITS = ("siren_image", "autoencoder_full_batch", "matrix_completion", "ode_fit")


def build(name: str, seed: int = 0, **changes: Any) -> Any:
    task = tasks.get(name)
    return task.build({**task.scales["smoke"], **changes}, seed, "standard")


@pytest.mark.parametrize("name", FITS)
def test_seeds_matter_from_the_start(name: str) -> None:
    ones, others = (build(name, seed).networks["model"].parameters() for seed in (0, 1))
    assert any(not torch.equal(a, b) for a, b in zip(ones, others, strict=True))
    assert build(name).evaluate("test")["arrived"] == 0


@pytest.mark.parametrize("name", FITS)
def test_the_curves_are_dense_enough_for_times_to_a_target(name: str) -> None:
    assert tasks.get(name).evaluations == 30


@pytest.mark.parametrize("name", FITS[:2])
def test_noise_can_be_had_by_the_dose(name: str) -> None:
    whole, noisy = build(name), build(name, batch=1)
    assert whole.same_loss
    assert not noisy.same_loss
    assert len(noisy.batch(0)) == noisy.batch_size == 1
    assert not torch.equal(noisy.batch(0), noisy.batch(1))
    assert whole.evaluate("valid") == noisy.evaluate("valid")


def test_the_right_factors_complete_the_matrix() -> None:
    problem = build("matrix_completion")
    assert problem.evaluate("valid")["arrived"] == 0
    left, values, right = torch.linalg.svd(low_rank_matrix(12, 2, 5.0))
    factors = problem.networks["model"]
    with torch.no_grad():
        factors.left.copy_(left[:, :2] * values[:2])
        factors.right.copy_(right[:2].T)
    found = problem.evaluate("valid")
    assert found["loss"] < 1e-28
    assert found["unseen_error"] < 1e-14
    assert found["arrived"] == 1


def test_a_hidden_entry_leaves_no_trace_in_the_loss() -> None:
    problem = build("matrix_completion", size=12, rank=12)
    factors, seen = problem.networks["model"], seen_entries(12, 0.7)
    matrix = low_rank_matrix(12, 12, 5.0)
    with torch.no_grad():
        factors.left.copy_(torch.where(seen, matrix, 100.0))
        factors.right.copy_(torch.eye(12))
    found = problem.evaluate("valid")
    assert found["loss"] == 0
    assert found["unseen_error"] > 100
    assert found["arrived"] == 0


def test_the_true_equation_explains_all_counts() -> None:
    problem = build("ode_fit")
    equation = problem.networks["model"]
    with torch.no_grad():
        for parameter, true in zip((equation.rates, equation.starts), truth(), strict=True):
            parameter.copy_(true)
    found = problem.evaluate("valid")
    assert (found["loss"], found["parameter_error"], found["arrived"]) == (0, 0, 1)
    with torch.no_grad():
        equation.rates[1] += 1e-3  # told by the prey and by one count of predators
    assert problem.evaluate("valid")["loss"] > 0


def test_spirals_are_each_others_reflection() -> None:
    points, labels = spirals(20, 1.5)
    torch.testing.assert_close(points[:10], -points[10:])
    assert labels.tolist() == [0.0] * 10 + [1.0] * 10
    assert points.norm(dim=1).max() == pytest.approx(1)


def test_waves_add_up() -> None:
    x, y = waves(5, [1, 2])
    expected = [math.sin(math.pi * a) + math.sin(2 * math.pi * a) / 2 for a in x.flatten()]
    assert y.flatten().tolist() == pytest.approx(expected)


def test_matrices_have_the_rank_and_condition_asked_for() -> None:
    values = torch.linalg.svdvals(low_rank_matrix(12, 3, 100.0))
    assert values[:3].tolist() == pytest.approx([1.0, 0.1, 0.01])
    assert values[3:].max() < 1e-14


def test_entries_are_seen_all_over_the_matrix_and_always_the_same() -> None:
    seen = seen_entries(50, 0.3)
    assert torch.equal(seen, seen_entries(50, 0.3))
    assert seen.sum() == 750
    assert seen.sum(0).min() > 4
    assert seen.sum(1).min() > 4


def stream(**changed: Any) -> OnlineRegressionProblem:
    found = smoke("online_regression", **changed)
    assert isinstance(found, OnlineRegressionProblem)
    return found


def test_the_teacher_has_nothing_left_to_learn() -> None:
    one = stream()
    one.model.load_state_dict(one._teacher.state_dict())
    assert one.evaluate("valid")["loss"] == one.evaluate("test")["loss"] == 0.0


def test_targets_have_noise_of_the_size_asked_for_and_inputs_their_spread() -> None:
    one = stream(batch_size=4000, noise=0.5, spread=10.0)
    inputs, targets = one.batch(0)
    sizes = inputs.std(0)
    assert sizes[0] / sizes[-1] == pytest.approx(10, rel=0.1)
    with torch.no_grad():
        assert (targets - one._teacher(inputs)).std().item() == pytest.approx(0.5, rel=0.1)


def test_the_teacher_is_everybodys() -> None:
    ones, others = stream()._teacher, smoke("online_regression", seed=5)
    assert isinstance(others, OnlineRegressionProblem)
    for a, b in zip(ones.parameters(), others._teacher.parameters(), strict=True):
        assert torch.equal(a, b)


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
