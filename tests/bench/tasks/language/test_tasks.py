"""The language tasks: what their batches, losses and measures promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_problems import smoke, train

from hvadam_bench import tasks
from hvadam_bench.tasks import Task

PTB = ["ptb_lstm1", "ptb_lstm2", "ptb_lstm3"]
TRANSLATION = ["iwslt14_transformer", "multi30k_transformer"]
WINDOWS = ["shakespeare_lstm", "pydoc_lstm", "wikitext2_transformer", "shakespeare_gpt"]
LANGUAGE = [*PTB, "ptb_lstm128", *TRANSLATION, *WINDOWS]
pytestmark = pytest.mark.usefixtures("no_data_folder")  # the smallest scale needs no files


def tensors(batch: Any) -> list[torch.Tensor]:
    parts = [batch] if isinstance(batch, torch.Tensor) else batch
    return [part for part in parts if isinstance(part, torch.Tensor)]


@pytest.mark.parametrize("name", LANGUAGE)
def test_batches_depend_on_seed_and_step_alone(name: str) -> None:
    one, other, stranger = smoke(name), smoke(name), smoke(name, seed=1)
    steps = range(0, one.steps, 3)
    forwards = [tensors(one.batch(step)) for step in steps]
    backwards = [tensors(other.batch(step)) for step in reversed(steps)][::-1]
    for mine, theirs in zip(forwards, backwards, strict=True):
        assert all(map(torch.equal, mine, theirs))
    elsewhere = [tensors(stranger.batch(step)) for step in steps]
    assert any(
        mine.shape != theirs.shape or not torch.equal(mine, theirs)
        for one, other in zip(forwards, elsewhere, strict=True)
        for mine, theirs in zip(one, other, strict=True)
    )
    weights = one.networks["model"].state_dict(), other.networks["model"].state_dict()
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert one.steps == stranger.steps


@pytest.mark.parametrize("name", LANGUAGE)
def test_loss_and_measure_fall(name: str) -> None:
    problem, task = smoke(name), tasks.get(name)
    before = problem.evaluate("valid")
    losses = train(problem, problem.steps)
    after = problem.evaluate("valid")
    assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])
    assert after["loss"] < 0.9 * before["loss"]
    assert problem.networks["model"].training  # as evaluations found it
    assert task.metric in after
    assert set(problem.evaluate("test")) >= {task.metric, "loss"}


@pytest.mark.parametrize("name", LANGUAGE)
def test_evaluations_leave_the_training_alone(name: str) -> None:
    quiet, asked = smoke(name), smoke(name)
    assert train(quiet, 3) == train(asked, 3)
    for split in ("valid", "test"):
        asked.evaluate(split)
    assert train(quiet, 3, first=3) == train(asked, 3, first=3)


@pytest.mark.parametrize("name", ["ptb_lstm2", "ptb_lstm128", "iwslt14_transformer"])
def test_training_goes_on_from_its_state(name: str) -> None:
    changed: dict[str, Any] = {"average": 2} if name.startswith("iwslt") else {}
    whole, resumed = smoke(name, **changed), smoke(name, **changed)
    half = whole.steps // 2
    train(whole, half)
    whole.evaluate("valid")
    resumed.networks["model"].load_state_dict(whole.networks["model"].state_dict())
    resumed.load_state_dict(whole.state_dict())
    rest = whole.steps - half
    assert train(whole, rest, first=half) == train(resumed, rest, first=half)
    assert whole.evaluate("test") == resumed.evaluate("test")


def test_the_largest_scales_name_what_they_miss(tmp_path: Path) -> None:
    for name in LANGUAGE:
        task: Task = tasks.get(name)
        *_, settings = task.scales.values()
        if settings["data"] != "pydoc":
            with pytest.raises(ValueError, match=r"put .* into .*none"):
                task.build(settings, 0, "standard")
