"""Physics-informed networks as tasks: what they are judged by, their batches, their protocols."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from made_problems import smoke, train

from hvadam_bench import tasks
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.running.runner import run
from hvadam_bench.tasks._full_batch import FullBatchProblem

PINNS = ["pinn_convection", "pinn_reaction", "pinn_wave", "pinn_burgers"]
every_pinn = pytest.mark.parametrize("name", PINNS)


@every_pinn
def test_judged_by_the_loss_trained_on_beside_error_and_arrival(name: str) -> None:
    problem = smoke(name)
    before = problem.evaluate("valid")
    train(problem, problem.steps)
    after = problem.evaluate("test")
    [update] = problem.updates(problem.batch(0))
    assert after.keys() == {"loss", "error", "arrived"}
    assert after["loss"] == pytest.approx(update.loss.item())
    assert after["loss"] < 0.9 * before["loss"]
    assert after["arrived"] == float(after["error"] < 0.1)


@every_pinn
def test_batches_cut_the_points_inside(name: str) -> None:
    problem = smoke(name, batch=6)
    assert problem.batch_size == 6
    rows = problem.batch(3)
    assert torch.equal(rows, smoke(name, batch=6).batch(3))
    [drawn], [whole] = problem.updates(rows), smoke(name).updates(None)
    assert drawn.loss != whole.loss
    assert problem.evaluate("valid") == smoke(name).evaluate("valid")
    with pytest.raises(ValueError, match=r"batch must be at most 20, .* got 21\."):
        smoke(name, batch=21)


@every_pinn
def test_scales(name: str) -> None:
    task = tasks.get(name)
    assert list(task.scales) == ["smoke", "laptop", "paper"]
    assert task.evaluations >= 30
    paper = task.scales["paper"]
    assert (paper["dtype"], paper["schedule"], paper["warmup"]) == ("float32", "constant", 0.0)
    published = {"pinn_burgers": (2540, 20, 15_000)}.get(name, (10_000, 200, 41_000))
    assert tuple(paper[key] for key in ("inside", "width", "steps")) == published


def test_paper_scale_builds_as_published() -> None:
    task = tasks.get("pinn_wave")
    problem = task.build(task.scales["paper"], 0, "standard")
    assert isinstance(problem, FullBatchProblem)
    shapes = [tuple(p.shape) for p in problem.model.parameters()]
    assert shapes == [(200, 2), (200,), (200, 200), (200,), (200, 200), (200,), (1, 200), (1,)]
    assert problem.lr_factor(0) == problem.lr_factor(40_999) == 1


def test_a_run_keeps_error_and_arrival_in_its_record(tmp_path: Path) -> None:
    asked = RunConfig("pinn_burgers", "adam", "smoke", options={"lr": 1e-2}, settings={"batch": 5})
    record = run(asked, Store(tmp_path))
    assert len(record.curve) == 31
    assert record.curve[-1].valid.keys() == {"loss", "error", "arrived"}
    assert all(math.isfinite(point.valid["error"]) for point in record.curve)
    assert {point.valid["arrived"] for point in record.curve} <= {0.0, 1.0}
