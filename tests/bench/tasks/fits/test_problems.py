"""The fits: their data, and what they measure where that is known."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from made_problems import smoke

from hvadam_bench import tasks
from hvadam_bench.tasks.fits.problems import (
    OnlineRegressionProblem,
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
