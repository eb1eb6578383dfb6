"""How optimizers bear learning rates above their best: `hvadam high-rates`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hvadam_bench.analysis import statistics
from hvadam_bench.running.records import Store
from hvadam_bench.sweeping import recipes
from hvadam_bench.sweeping.costs import Costs
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.recipes.high_rates import ENTRANTS, RATES, at_rate
from hvadam_bench.sweeping.study_results import read_study
from hvadam_bench.sweeping.sweep import Sweep

STUDY = "high_rates"
LOSS = statistics.Metric("loss", "min")


@dataclass(frozen=True)
class AtRate:
    """Test losses at one learning rate, over the seeds.

    Attributes:
        lr: The rate.
        median, lower, upper: Of the losses, with their quartiles; infinite where runs diverged.
        n: How many seeds.
    """

    lr: float
    median: float
    lower: float
    upper: float
    n: int


@dataclass(frozen=True)
class RatesOnTask:
    """Everyone's losses on one task, by rate; the lowest rate first."""

    task: str
    title: str
    entrants: Mapping[str, tuple[AtRate, ...]]


@dataclass(frozen=True)
class HighRates:
    """The tasks that are finished, those that are not, and what they were measured with."""

    versions: Mapping[str, str]
    tasks: tuple[RatesOnTask, ...]
    unfinished: tuple[str, ...]


def store_of(folder: Path, results: Path) -> Store:
    """Return where the records are: in a folder to work in, and packed."""
    return Store(folder / STUDY, results / STUDY)


def plan(store: Store) -> list[Sweep]:
    """Return the sweeps, a task each, in the order to run them."""
    costs = Costs(store)
    return [Sweep([study], store, STUDY, costs) for study in recipes.get(STUDY).studies]


def measure(store: Store) -> HighRates:
    """Return the losses by rate, as far as the records go."""
    ledger = Ledger(store)
    tasks: list[RatesOnTask] = []
    unfinished: list[str] = []
    versions: Mapping[str, str] = {}
    for study in recipes.get(STUDY).studies:
        reading = read_study(study, ledger)
        if reading.results is None or not reading.finished:
            unfinished.append(study.task)
            continue
        runs = reading.results.contenders
        about = next(iter(runs.values())).judged[0].environment.get("versions", {})
        versions = {name: about[name] for name in ("hvadam", "torch") if name in about}
        found: dict[str, tuple[AtRate, ...]] = {}
        for entry in ENTRANTS:
            points = []
            for lr in RATES:
                judged = runs[at_rate(entry, lr).entrant].judged
                told = statistics.summarize(statistics.final(run, LOSS) for run in judged)
                points.append(AtRate(lr, told.median, told.lower, told.upper, told.n))
            found[entry.entrant] = tuple(points)
        tasks.append(RatesOnTask(study.task, reading.results.title, found))
    return HighRates(versions, tuple(tasks), tuple(unfinished))


def best(points: tuple[AtRate, ...]) -> AtRate:
    """Return the rate with the lowest median loss."""
    return min(points, key=lambda point: point.median)


def excess(points: tuple[AtRate, ...], factor: float) -> float | None:
    """Return by what factor the loss grows at so many times the best rate; None if not tried.

    Example:
        >>> points = tuple(AtRate(lr, loss, loss, loss, 5) for lr, loss in ((0.1, 2.0), (1, 3.0)))
        >>> excess(points, 10), excess(points, 100)
        (1.5, None)
    """
    top = best(points)
    for point in points:
        if math.isclose(point.lr, factor * top.lr, rel_tol=0.15):
            return point.median / top.median
    return None
