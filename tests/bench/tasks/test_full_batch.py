"""Losses over all examples or over drawn ones: batches, types of numbers, schedules, measures."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hvadam_bench.tasks._full_batch import FullBatchProblem

X = torch.linspace(-1, 1, 12, dtype=torch.float64)[:, None]


def loss(network: nn.Module, rows: Tensor | None = None) -> Tensor:
    x = (X if rows is None else X[rows]).to(next(network.parameters()).dtype)
    return (network(x) - x.sin()).square().mean()


def problem(seed: int = 0, **settings: Any) -> FullBatchProblem:
    usual = {"steps": 40, "warmup": 0.1}
    return FullBatchProblem(lambda: nn.Linear(1, 1), loss, len(X), {**usual, **settings}, seed)


def drawn(built: FullBatchProblem, step: int) -> Tensor:
    rows = built.batch(step)
    assert rows is not None
    return rows


def test_every_step_sees_all_unless_a_batch_is_asked_for() -> None:
    for built in (problem(), problem(batch=None)):
        assert built.batch(3) is None
        assert built.batch_size == 12
        [update] = built.updates(built.batch(3))
        assert update.loss == loss(built.model)


def test_a_loss_without_batches_is_never_handed_one() -> None:
    built = FullBatchProblem(
        lambda: nn.Linear(1, 1), lambda net: loss(net), 12, {"steps": 5, "warmup": 0.0}, seed=0
    )
    [update] = built.updates(built.batch(0))
    assert update.loss.item() == built.evaluate("valid")["loss"]


def test_a_batch_is_the_same_whenever_asked() -> None:
    one, same, other = problem(batch=5), problem(batch=5), problem(1, batch=5)
    steps = range(8)
    forwards = [drawn(one, step) for step in steps]
    torch.rand(3)
    backwards = [drawn(same, step) for step in reversed(steps)][::-1]
    assert all(map(torch.equal, forwards, backwards))
    assert one.batch_size == 5
    for rows in forwards:
        assert len(set(rows.tolist())) == 5  # no example twice
        assert set(rows.tolist()) <= set(range(12))
    sets = [frozenset(rows.tolist()) for rows in forwards]
    assert len(set(sets)) > 1
    assert sets != [frozenset(drawn(other, step).tolist()) for step in steps]


def test_a_step_sees_its_batch_and_evaluation_everything() -> None:
    built = problem(batch=5)
    rows = drawn(built, 2)
    [update] = built.updates(rows)
    assert update.loss == loss(built.model, rows)
    assert built.evaluate("valid") == {"loss": loss(built.model).item()}


def test_batches_are_drawn_evenly() -> None:
    built = problem(batch=3)
    seen = np.bincount(torch.cat([drawn(built, step) for step in range(2000)]), minlength=12)
    # 2000 draws of 3 in 12: 500 each, and a standard deviation below 20.
    assert np.abs(seen - 500).max() < 90


def test_all_examples_as_a_batch_are_the_full_loss() -> None:
    built = problem(batch=12)
    [update] = built.updates(built.batch(0))
    assert update.loss.item() == pytest.approx(loss(built.model).item(), rel=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_of_the_type_asked_for(dtype: str) -> None:
    built = problem(dtype=dtype)
    assert {p.dtype for p in built.model.parameters()} == {getattr(torch, dtype)}
    assert {p.dtype for p in problem().model.parameters()} == {torch.float64}
    weights = zip(built.model.parameters(), problem().model.parameters(), strict=True)
    assert all(torch.equal(ours.double(), usual) for ours, usual in weights)


def test_the_rate_is_constant_where_the_task_says_so() -> None:
    constant = problem(schedule="constant", warmup=0.0)
    assert {constant.lr_factor(step) for step in range(40)} == {1.0}
    warm = problem(schedule="constant")
    assert [warm.lr_factor(step) for step in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    for cosine in (problem(), problem(schedule="cosine")):
        assert cosine.lr_factor(40) == pytest.approx(0)


def test_measures_stand_beside_the_loss() -> None:
    settings = {"steps": 5, "warmup": 0.0}
    built = FullBatchProblem(
        lambda: nn.Linear(1, 1), loss, 12, settings, 0, measure=lambda net: {"error": 0.5}
    )
    assert built.evaluate("test") == {"loss": loss(built.model).item(), "error": 0.5}


BAD = [
    ({"batch": 0}, "batch must be a whole number of at least 1, or None for all examples, got 0."),
    ({"batch": True}, "batch must be a whole number of at least 1, .* got True."),
    ({"batch": "all"}, "batch must be a whole number of at least 1, .* got 'all'."),
    ({"batch": 13}, "batch must be at most 12, all training examples, got 13."),
    ({"dtype": "float16"}, "dtype must be one of float32, float64, got 'float16'."),
    ({"schedule": "linear"}, "schedule must be one of cosine, constant, got 'linear'."),
]


@pytest.mark.parametrize(("settings", "message"), BAD, ids=lambda case: str(case)[:24])
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.sub(r"\.$", r"\\.$", message)):
        problem(**settings)
