"""The trainings behind the paper's tables, and what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults, describe_options
from hvadam_bench.analysis.judging import judge_against, median_of
from hvadam_bench.running.records import Store
from hvadam_bench.studies._study import Place
from hvadam_bench.sweeping.costs import Costs
from hvadam_bench.sweeping.recipe import Recipe
from hvadam_bench.sweeping.sweep import Sweep

FOLDER = "paper"


@dataclass(frozen=True)
class Row:
    """How one contender did on one task.

    Attributes:
        contender: Its name, with its variant.
        options: What its tuning chose, in words.
        median: The test value, over seeds.
        interval: The 95% bootstrap interval of the median.
        seeds: How many runs there are.
        verdict: The word on it against the reference; empty for the reference.
        published: The paper's number, where there is one.
    """

    contender: str
    options: str
    median: float
    interval: tuple[float, float]
    seeds: int
    verdict: str
    published: float | None


@dataclass(frozen=True)
class Panel:
    """One task of a table."""

    reproduces: str
    title: str
    metric: str
    goal: str
    reference: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Paper:
    """The panels that have runs."""

    panels: tuple[Panel, ...]


def measure(plan: Sequence[Recipe], place: Place) -> dict[str, Paper]:
    """Run the sweeps, a task each, and return what the records say."""
    store = Store(place.runs / FOLDER, place.results / FOLDER)
    costs = Costs(store)
    sweeps = {
        (one.reproduces, number): Sweep([contest], store, one.name, costs)
        for one in plan
        for number, contest in enumerate(one.studies)
    }
    place.sweep(list(sweeps.values()))
    panels = [
        _panel(what, found.results, found.contest.reference)
        for (what, _), sweep in sweeps.items()
        for found in sweep.results()
        if found.results
    ]
    return {"paper": Paper(tuple(panels))}


def _panel(what: str, task: TaskResults, reference: str) -> Panel:
    judged = judge_against(task, reference)
    words = {name: one.word for name, one in judged.items()}
    rows = _rows((one for one in task.contenders.values() if one.judged), task, words)
    return Panel(what, task.title, task.metric.name, task.metric.goal, reference, tuple(rows))


def _rows(
    contenders: Iterable[ContenderRuns], task: TaskResults, words: dict[str, str]
) -> Iterable[Row]:
    for one in contenders:
        values = [statistics.final(run, task.metric) for run in one.judged]
        middle = median_of(one, task.metric)
        found = statistics.bootstrap(values) if len(values) > 1 else None
        ends = (found.low, found.high) if found else (middle, middle)
        [*published] = {run.published for run in one.judged} - {None}
        yield Row(
            one.name,
            describe_options(one.options),
            middle,
            ends,
            len(values),
            words.get(one.name, ""),
            published[0] if len(published) == 1 else None,
        )
