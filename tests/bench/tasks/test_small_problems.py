"""The small tasks that a momentum is chosen on: their batches, losses and schedules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from interrupted import KilledError, Killer, essence
from made_problems import smoke, train
from torch import Tensor, nn

from hvadam_bench import tasks
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.running.runner import run
from hvadam_bench.studies.momentum.plan import PROBLEMS
from hvadam_bench.tasks._full_batch import FullBatchProblem

SMOOTH = [one.name for one in PROBLEMS if one.kind == "smooth"]
NOISY = [one.name for one in PROBLEMS if one.kind == "noisy" and not one.task]
SMALL = [*SMOOTH, *NOISY]
LEARNING = [name for name in SMALL if name != "ring_gan"]  # two networks, and no loss that falls
pytestmark = pytest.mark.usefixtures("no_data_folder")


def tensors(batch: Any) -> Iterator[torch.Tensor]:
    if isinstance(batch, torch.Tensor):
        yield batch
    elif batch is not None:
        yield from batch


@pytest.mark.parametrize("name", SMALL)
def test_batches_and_weights_depend_on_seed_and_step_alone(name: str) -> None:
    one, other, stranger = smoke(name), smoke(name), smoke(name, seed=1)
    steps = range(0, one.steps, 7)
    forwards = [list(tensors(one.batch(step))) for step in steps]
    backwards = [list(tensors(other.batch(step))) for step in reversed(steps)][::-1]
    elsewhere = [list(tensors(stranger.batch(step))) for step in steps]
    for mine, theirs in zip(forwards, backwards, strict=True):
        assert all(map(torch.equal, mine, theirs))
    differ = [
        not torch.equal(a, b)
        for mine, theirs in zip(forwards, elsewhere, strict=True)
        for a, b in zip(mine, theirs, strict=True)
    ]
    assert any(differ) == (name in NOISY)
    weights = [next(iter(p.networks.values())).state_dict() for p in (one, other, stranger)]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert any(not torch.equal(weights[0][key], weights[2][key]) for key in weights[0])


@pytest.mark.parametrize("name", LEARNING)
def test_loss_falls(name: str) -> None:
    problem, task = smoke(name), tasks.get(name)
    assert (task.metric, task.goal) == ("loss", "min")
    before = problem.evaluate("valid")
    losses = train(problem, problem.steps)
    after = problem.evaluate("valid")
    assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])
    assert after["loss"] < 0.9 * before["loss"]


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_problems_are_judged_by_the_loss_they_train_on(name: str) -> None:
    problem = smoke(name)
    train(problem, 5)
    [update] = problem.updates(problem.batch(0))
    assert problem.evaluate("valid") == problem.evaluate("test") == {"loss": update.loss.item()}
    assert update.loss.dtype == torch.float64


@pytest.mark.parametrize("name", NOISY)
def test_noisy_problems_are_chosen_by_one_split_and_judged_by_another(name: str) -> None:
    problem = smoke(name)
    assert problem.evaluate("valid")["loss"] != problem.evaluate("test")["loss"]
    assert problem.evaluate("test") == problem.evaluate("test")


@pytest.mark.parametrize("name", SMALL)
def test_schedules_warm_up_and_end_at_nothing(name: str) -> None:
    problem = smoke(name)
    factors = [problem.lr_factor(step) for step in range(problem.steps)]
    peak = int(np.argmax(factors)) + 1  # twice, where the rise ends and the fall begins
    assert factors[0] > 0
    assert max(factors) == pytest.approx(1)
    assert np.all(np.diff(factors[peak:]) < 0)
    assert problem.lr_factor(problem.steps) == pytest.approx(0)


@pytest.mark.parametrize("name", SMALL)
def test_scales_share_their_settings(name: str) -> None:
    scales = tasks.get(name).scales
    assert list(scales) == ["smoke", "laptop"]  # no paper has them
    assert scales["smoke"].keys() == scales["laptop"].keys()


@pytest.mark.parametrize("name", SMALL)
def test_killed_and_resumed_is_never_killed(name: str, tmp_path: Path) -> None:
    asked = RunConfig(name, "adam", "smoke", options={"lr": 1e-2})
    whole = run(asked, Store(tmp_path / "whole"))
    store = Store(tmp_path / "killed")
    killer = Killer(20)
    with pytest.raises(KilledError):
        run(asked, store, watcher=killer)
    assert essence(run(asked, store, watcher=killer)) == essence(whole)


# Losses over all examples or over drawn ones: batches, types of numbers, schedules, measures.
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
