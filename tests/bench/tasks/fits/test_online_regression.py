"""Regression on a stream: its floor, its inputs and its noise."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from made_problems import smoke

from hvadam_bench.tasks.fits.online_regression import OnlineRegressionProblem


def problem(**changed: Any) -> OnlineRegressionProblem:
    found = smoke("online_regression", **changed)
    assert isinstance(found, OnlineRegressionProblem)
    return found


def test_the_teacher_has_nothing_left_to_learn() -> None:
    one = problem()
    one.model.load_state_dict(one._teacher.state_dict())
    assert one.evaluate("valid")["loss"] == one.evaluate("test")["loss"] == 0.0


def test_targets_have_noise_of_the_size_asked_for_and_inputs_their_spread() -> None:
    one = problem(batch_size=4000, noise=0.5, spread=10.0)
    inputs, targets = one.batch(0)
    sizes = inputs.std(0)
    assert sizes[0] / sizes[-1] == pytest.approx(10, rel=0.1)
    with torch.no_grad():
        assert (targets - one._teacher(inputs)).std().item() == pytest.approx(0.5, rel=0.1)


def test_the_teacher_is_everybodys() -> None:
    ones, others = problem()._teacher, smoke("online_regression", seed=5)
    assert isinstance(others, OnlineRegressionProblem)
    for a, b in zip(ones.parameters(), others._teacher.parameters(), strict=True):
        assert torch.equal(a, b)
