"""Trainings whose contender evaluates the loss itself: budgets, points, schedules, refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hvadam_bench import contenders, tasks
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.running.runner import run
from hvadam_bench.running.training import Training
from hvadam_bench.tasks import Problem, Task
from hvadam_bench.tasks._full_batch import FullBatchProblem

SEARCHING = [name for name in contenders.names() if contenders.get(name).closure]
searching = pytest.mark.parametrize("contender", SEARCHING)


def config(contender: str, **changes: Any) -> RunConfig:
    return RunConfig("matrix_factorization", contender, "smoke", **changes)


@searching
def test_evaluations_are_the_budget_and_curves_have_the_points_of_others(
    contender: str, store: Store
) -> None:
    adam, found = run(config("adam"), store), run(config(contender), store)
    assert found.status == "done"
    assert found.gradient_evaluations == adam.gradient_evaluations == 60
    for what in ("step", "examples"):
        ours, theirs = ([getattr(p, what) for p in one.curve] for one in (found, adam))
        assert ours == theirs
    assert found.curve[-1].valid["loss"] < found.curve[0].valid["loss"] / 10
    assert found.decay["model"].kind == "none"


@searching
@pytest.mark.parametrize(
    "asked", [("digits_mlp", {}), ("siren_image", {"batch": 8})], ids=["batches", "a dose of noise"]
)
def test_losses_that_change_are_refused_with_a_way_out(
    contender: str, asked: tuple[str, dict[str, Any]], store: Store
) -> None:
    task, settings = asked
    refused = RunConfig(task, contender, "smoke", settings=settings)
    rule = rf"{contender} evaluates a loss several times.*{task} draws batches.*take a task of one"
    with pytest.raises(ValueError, match=rule):
        run(refused, store)
    assert store.get(refused) is None
    with pytest.raises(ValueError, match=rule):
        Training(refused)


@pytest.mark.parametrize("switch", [0.25, 0.5, 1.0])
def test_the_first_optimizer_goes_through_the_whole_schedule_in_its_share(switch: float) -> None:
    training = Training(config("adam_lbfgs", options={"lr": 0.01, "switch": switch}))
    problem, first = training.problem, round(switch * 60)
    [optimizer] = training.optimizers.values()
    for step in range(first):
        assert training.step == step
        training.advance()
        factor = problem.lr_factor(min(round(step / switch), 59))
        [group] = optimizer.first.param_groups  # type: ignore[attr-defined]
        assert group["lr"] == pytest.approx(0.01 * factor, rel=1e-12)
    assert factor < 0.05
    if switch < 1:
        training.advance()
        [group] = optimizer.second.param_groups  # type: ignore[attr-defined]
        assert group["lr"] == 1.0
        assert training.step > first + 1


@pytest.mark.parametrize("alone", ["adam", "hvadam"])
def test_a_switch_at_the_end_is_no_switch(alone: str, store: Store) -> None:
    options = {"lr": 0.03}
    one = run(config(alone, options=options), store)
    other = run(config(f"{alone}_lbfgs", options={**options, "switch": 1.0}), store)
    assert [p.valid for p in one.curve] == [p.valid for p in other.curve]


class Cliff(nn.Module):
    """A number that slides down to where its root is no number."""

    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.ones(1))

    def forward(self) -> Tensor:
        return self.x.sqrt().sum()


@searching
def test_a_line_search_that_meets_no_number_diverges(
    contender: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(settings: Any, seed: int, protocol: str) -> Problem:
        return FullBatchProblem(Cliff, lambda network: network(), 1, settings, seed)

    task = Task(
        *("cliff", "A cliff", "extra", "loss", "min"),
        build=build,
        scales={"smoke": {"steps": 40, "warmup": 0.0}},
    )
    monkeypatch.setattr(tasks, "get", lambda name: task)
    record = run(RunConfig("cliff", contender, "smoke"), store)
    assert record.status == "diverged"
    assert "the loss was nan" in record.reason
    assert 1 < record.gradient_evaluations <= 40
