"""The demo's trainings, and the answers for their tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hvadam_bench.pages.report.answers import answer_of
from hvadam_bench.running.records import Store
from hvadam_bench.studies._study import Place
from hvadam_bench.studies.demo.plan import Plan
from hvadam_bench.studies.valley.functions import Problem
from hvadam_bench.studies.valley.paths import draw
from hvadam_bench.studies.valley.result import PAPER_FOUR
from hvadam_bench.sweeping.sweep import Sweep

ANGLE = 30.0  # degrees between the valley and the axes


@dataclass(frozen=True)
class Answer:
    """Whom to use on a task, in words."""

    task: str
    said: str


@dataclass(frozen=True)
class Demo:
    """The answers for the tasks, and the name of the picture of the paths."""

    answers: tuple[Answer, ...]
    picture: str


def store_of(out: Path) -> Store:
    """Return where the demo's records are."""
    return Store(out / "runs")


def measure(plan: Plan, place: Place) -> dict[str, Demo]:
    """Draw the paths of four optimizers down a narrow valley, and train what is not recorded."""
    place.on_progress("paths down a narrow valley", 0.0)
    picture = draw_paths(plan.steps, place.out)
    place.on_progress("", 1.0)
    sweep = Sweep(plan.contests, store_of(place.out), "demo")
    place.sweep([sweep])
    return {"demo": Demo(tuple(_answers(sweep)), picture.name)}


def draw_paths(steps: int, out: Path) -> Path:
    """Draw the paths of the paper's four optimizers across the axes; return the picture."""
    return draw(Problem("f2", (ANGLE,)), PAPER_FOUR, steps, out)


def _answers(sweep: Sweep) -> Sequence[Answer]:
    found = [one.results for one in sweep.results() if one.results]
    return [Answer(one.task, answer_of(one).told) for one in found]
