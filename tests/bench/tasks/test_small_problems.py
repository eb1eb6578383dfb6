"""The small tasks that a momentum is chosen on: their batches, losses and schedules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from interrupted import KilledError, Killer, essence
from made_problems import smoke, train

from hvadam_bench import tasks
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.running.runner import run
from hvadam_bench.studies.momentum.plan import PROBLEMS

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
