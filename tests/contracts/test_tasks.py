"""What every task promises: the same batches whenever asked, exact resuming, refusals at the start.

The tasks are those of the registry, at smoke scale; a new file is held to all of this.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from hvadam_bench import tasks
from hvadam_bench.data import DataError
from hvadam_bench.running import checkpoints
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.options import check
from hvadam_bench.running.training import Training
from hvadam_bench.tasks import Problem, Task

every_task = pytest.mark.parametrize("name", tasks.names())


@pytest.fixture(autouse=True)
def _as_in_a_run() -> Iterator[None]:
    """Draw and compute as the runner does."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with checkpoints.isolated(0):
        yield
    torch.set_num_threads(threads)


def config(name: str, **settings: Any) -> RunConfig:
    return RunConfig(name, "adam", "smoke", options={"lr": 1e-3}, settings=settings)


def training(name: str, **settings: Any) -> Training:
    """Set up a training, or skip where its data is not here."""
    try:
        return Training(config(name, **settings))
    except DataError as error:
        pytest.skip(str(error))


def tensors(batch: Any) -> list[torch.Tensor]:
    """Return all tensors of a batch, however it is built."""
    if isinstance(batch, torch.Tensor):
        return [batch]
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    if isinstance(batch, Sequence) and not isinstance(batch, str):
        return [tensor for part in batch for tensor in tensors(part)]
    return [tensor for part in getattr(batch, "__dict__", {}).values() for tensor in tensors(part)]


def assert_same_batch(one: Problem, other: Problem, step: int) -> None:
    ours, theirs = tensors(one.batch(step)), tensors(other.batch(step))
    assert ours or one.batch(step) is None, "a batch has tensors, unless every step sees all data"
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a, b), f"the batch of step {step}"


@every_task
def test_the_task_is_complete(name: str) -> None:
    task = tasks.get(name)
    assert task.name == name
    assert task.title
    assert task.goal in ("min", "max")
    assert "standard" in task.protocols
    assert "smoke" in task.scales
    keys = [set(settings) for settings in task.scales.values()]
    assert all(own == keys[0] for own in keys), "scales differ in their settings"


@every_task
def test_the_same_batch_whenever_asked(name: str) -> None:
    one, other = training(name).problem, training(name).problem
    last = one.steps - 1
    assert last >= 1
    for step in (0, 1, last):
        assert_same_batch(one, other, step)
    torch.rand(7)  # nobody draws batches from the global generator
    for step in (last, 1, 0):
        assert_same_batch(one, other, step)


@every_task
def test_training_goes_on_from_its_checkpoint_to_the_last_bit(name: str, tmp_path: Path) -> None:
    whole = training(name)
    steps = min(3, whole.problem.steps // 2)
    for _ in range(steps):
        whole.advance()
    valid = whole.evaluate().valid
    checkpoints.save(tmp_path / "checkpoint", whole.state_dict())
    losses = [whole.advance() for _ in range(steps)]
    resumed = training(name)
    content = checkpoints.load(tmp_path / "checkpoint")
    assert content is not None
    resumed.load_state_dict(content)
    assert resumed.curve[-1].valid == valid
    assert [resumed.advance() for _ in range(steps)] == losses
    metric = tasks.get(name).metric
    assert math.isfinite(valid[metric])
    assert math.isfinite(valid["loss"])


def counts(task: Task) -> list[str]:
    """Return the settings of which there cannot be fewer than one."""
    scales = list(task.scales.values())
    return [
        name
        for name, value in task.scales["smoke"].items()
        if type(value) is int and all(own[name] is None or own[name] >= 1 for own in scales)
    ]


@every_task
def test_bad_settings_are_refused_by_name_and_value(name: str) -> None:
    task = tasks.get(name)
    assert counts(task)
    for setting in counts(task):
        for value in (0, -4):
            with pytest.raises(ValueError, match=rf"{name}: {setting} must be .* got {value}\."):
                check(config(name, **{setting: value}))
        with pytest.raises(ValueError, match=f"{name}: {setting} must be"):
            check(config(name, **{setting: "many"}))
    with pytest.raises(ValueError, match=f"{name} has no setting 'colour'"):
        check(config(name, colour=1))
    for setting in set() if task.stream else {"batch_size", "columns"} & set(counts(task)):
        training(name)  # or skip
        with pytest.raises(ValueError, match=f"{setting} must be at most .* got 10000000"):
            Training(config(name, **{setting: 10_000_000}))
