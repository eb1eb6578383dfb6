"""Evaluations are timed as runs take them, in pairs. No test looks at a real time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from hvadam_bench import tasks
from hvadam_bench.running.training import DivergedError
from hvadam_bench.studies.evidence import timing
from hvadam_bench.studies.evidence.plan import SMOOTH, contests
from hvadam_bench.studies.evidence.timing import config_of, measure
from hvadam_bench.sweeping.search import Contest, Entry
from hvadam_bench.tasks import Problem, Task, Update

COMMITTED = Path(__file__).parents[4] / "results" / "evaluation-times.json"
# Seconds of a step by whom; an evaluation takes 1.
STEPS = {"Adam": 1.0, "HVAdam": 3.0, "LBFGS": 20.0}
ENTRIES = (
    Entry("adam", {"lr": 1e-2}),
    Entry("hvadam", {"lr": 1e-2}),
    Entry("lbfgs", rates=[1.0]),
    Entry("adam_lbfgs", rate_of="adam"),
)


class Valley(Problem):
    """Rosenbrock's, so long that nobody gets to its end; evaluations move a clock."""

    same_loss = True

    def __init__(self, time: FakeTime, steps: int) -> None:
        self.time, self.steps, self.batch_size = time, steps, 1
        self.networks = {"model": nn.Linear(100, 1, bias=False, dtype=torch.float64)}

    def batch(self, step: int, variant: int = 0) -> None:
        self.time.asked.append(step)

    def updates(self, batch: None) -> Iterator[Update]:
        self.time.now += 1.0
        if self.time.broken_at == len(self.time.asked):
            yield Update(self.networks["model"](torch.full((1, 100), torch.nan).double()).sum())
        else:
            [weight] = self.networks["model"].parameters()
            x, y = weight[0, :-1], weight[0, 1:]
            yield Update(((1 - x) ** 2 + 100 * (y - x * x) ** 2).sum())


class FakeTime:
    """A clock that evaluations and steps move, and what was asked for on the way."""

    def __init__(self) -> None:
        self.now = self.stepped_at = 0.0
        self.asked: list[int] = []
        self.broken_at = -1

    def __call__(self) -> float:
        return self.now

    def stepped(self, optimizer: Any, *_: Any) -> None:
        if self.now > self.stepped_at:  # torch calls hooks twice if a base class has stepped before
            self.now += STEPS.get(type(optimizer).__name__, 0.0)
        self.stepped_at = self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTime]:
    """Return the clock of a task that everyone finds under any name."""
    clock = FakeTime()

    def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Valley:
        return Valley(clock, settings["steps"])

    task = Task(
        *("valley", "A valley", "extra", "loss", "min"),
        build=build,
        scales={"laptop": {"steps": 600}},
        evaluations=2,
    )
    monkeypatch.setattr(tasks, "get", lambda name: task)
    monkeypatch.setattr(timing, "GROUP_SECONDS", 8.0)
    hook = register_optimizer_step_post_hook(clock.stepped)
    yield clock
    hook.remove()


def test_an_evaluation_has_its_share_of_a_step(time: FakeTime) -> None:
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    random = torch.get_rng_state()
    told: list[tuple[str, float]] = []
    found = measure(
        {"smooth": [Contest("valley", ENTRIES)]},
        rounds=3,
        clock=time,
        on_progress=lambda doing, share: told.append((doing, share)),
    )
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before
    assert torch.equal(torch.get_rng_state(), random)
    [times] = found["tasks"].values()
    assert (times["part"], times["reference"]) == ("smooth", "adam")
    assert list(times["contenders"]) == ["hvadam", "lbfgs", "adam_lbfgs"]
    ours, searches, both = times["contenders"].values()
    assert times["reference_milliseconds"]["median"] == 2000.0
    assert (ours["evaluations"], ours["seconds"]) == (3, [4.0, 4.0, 4.0])
    assert ours["ratio"]["median"] == 2.0
    # A hundred iterations of L-BFGS are one step: little of it falls on an evaluation.
    assert all(1.1 < one < 1.5 for one in searches["seconds"])
    # One half of a run is Adam's, the other is L-BFGS's.
    halves = [0.5 * 2.0 + 0.5 * one for one in searches["seconds"]]
    assert both["seconds"] == pytest.approx(halves)
    assert sum(share for _, share in told) == pytest.approx(1.0)
    assert told[0] == ("valley: preparing", 0.0)
    assert {"cpu", "cores"} <= found["environment"]["machine"].keys()
    assert "torch" in found["environment"]["versions"]


@pytest.mark.slow
def test_a_training_at_its_end_goes_back_to_where_it_was_warm(
    time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "GROUP_SECONDS", 600.0)
    measure({"smooth": [Contest("valley", ENTRIES[:2], trials=1)]}, rounds=8, clock=time)
    # Groups of 150 and 300 steps, eight times, are more than 600; no step is ever past the end.
    assert max(time.asked) < 600
    assert time.asked.count(timing.WARM_UP) > 2
    assert time.asked.count(timing.WARM_UP - 1) == 2


def test_who_diverges_begins_again_once(time: FakeTime) -> None:
    study = Contest("valley", ENTRIES[:2], trials=1)
    time.broken_at = 20
    [times] = measure({"smooth": [study]}, rounds=3, clock=time)["tasks"].values()
    assert times["contenders"]["hvadam"]["seconds"] == [4.0, 4.0, 4.0]
    time.broken_at = len(time.asked) + 2
    with pytest.raises(DivergedError):  # in the warm-up: there is nowhere to go back to
        measure({"smooth": [study]}, rounds=3, clock=time)


def test_ratios_are_those_of_pairs_and_the_reference_has_all_its_groups(
    time: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, beside = (3.0, 3.0, 3.0), (2.0, 1.0, 4.0)
    monkeypatch.setattr(timing, "race", lambda pairs, *_: [(own, beside) for _ in pairs])
    [times] = measure({"smooth": [Contest("valley", ENTRIES[:2])]}, clock=time)["tasks"].values()
    # The ratios are 1.5, 3 and 0.75; the ratio of the medians would hide how far they lie apart.
    assert times["contenders"]["hvadam"]["ratio"] == {"q1": 1.125, "median": 1.5, "q3": 2.25}
    assert times["reference_milliseconds"]["median"] == 2000.0


def test_the_committed_times_are_of_every_smooth_task_and_of_a_quiet_machine() -> None:
    found = json.loads(COMMITTED.read_text(encoding="utf-8"))
    assert sum(task["part"] == "smooth" for task in found["tasks"].values()) == 8
    assert all("hvadam" in task["contenders"] for task in found["tasks"].values())
    assert (found["alone"], found["threads"]) == (True, 1)


def test_what_is_timed_is_what_the_comparison_runs() -> None:
    for study in contests()["smooth"]:
        for arm in study.arms():
            config = config_of(arm)
            assert (config.task, config.scale, config.settings) == (study.task, "laptop", {})
            assert config.entrant == arm.entry.entrant
            expected = 1.0 if config.contender == "lbfgs" else SMOOTH[study.task]
            assert config.options["lr"] == expected
            assert arm.entry.options.items() <= config.options.items()
