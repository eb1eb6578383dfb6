"""Which step along the hidden vector to take: candidates scored against Adam and NAdam.

    hvadam step-rule

works through the stages that `docs/decisions/0032-choosing-the-step.md` sets out. All stages share
one store: what an earlier one has tuned or judged, a later one does not run again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.running.records import Record, Store
from hvadam_bench.sweeping import recipes
from hvadam_bench.sweeping.contest_results import read_contest
from hvadam_bench.sweeping.costs import Costs
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.recipes.step_rule import REFERENCES, SMOOTH
from hvadam_bench.sweeping.sweep import Sweep

FOLDER = "step_rule"
CLIP = math.log(10)
# Losses below it are rounding; a logarithm needs more than 0.
TINY = 1e-300
LOSS = statistics.Metric("loss", "min")

Kind = Literal["smooth", "noisy"]


@dataclass(frozen=True)
class Ending:
    """How one entrant ended on one problem.

    Attributes:
        task: The problem.
        kind: Whether it is smooth, or has mini-batches.
        entrant: Who.
        lr: The learning rate that tuning chose.
        at_edge: Whether that is still the lowest or the highest tried.
        losses: The final loss of each judged seed; infinite if it diverged.
        ratio: Logarithm of their geometric mean over that of the reference, clipped.
    """

    task: str
    kind: Kind
    entrant: str
    lr: float
    at_edge: bool
    losses: tuple[float, ...]
    ratio: float


@dataclass(frozen=True)
class Standing:
    """One entrant over all problems; ratios are logarithms, below 0 is ahead of the reference.

    Attributes:
        entrant: Who.
        mean, median: Over the problems.
        worst: The highest, and `worst_on` its problem.
        smooth, noisy: The mean over that half; None if no problem of it is finished.
        ahead: On how many problems the ratio is below 0.
        problems: Of how many.
        seeds: On each.
    """

    entrant: str
    mean: float
    median: float
    worst: float
    worst_on: str
    smooth: float | None
    noisy: float | None
    ahead: int
    problems: int
    seeds: int


@dataclass(frozen=True)
class Stage:
    """One stage as far as its problems are finished.

    Attributes:
        name: Of the recipe.
        references: By problem, whose loss the others' are divided by: Adam's or NAdam's.
        endings: Of everyone on every finished problem.
        standings: Of everyone, the best first.
        unfinished: Problems with runs to come.
    """

    name: str
    references: Mapping[str, str]
    endings: tuple[Ending, ...]
    standings: tuple[Standing, ...]
    unfinished: tuple[str, ...]


@dataclass(frozen=True)
class StepRule:
    """The stages, and what they were measured with."""

    versions: Mapping[str, str]
    stages: tuple[Stage, ...]


def stages() -> list[str]:
    """Return the names of the recipes, in their order."""
    return [name for name in recipes.names() if name.startswith(f"{FOLDER}_")]


def store_of(folder: Path, results: Path) -> Store:
    """Return where the records of all stages are: in a folder to work in, and packed."""
    return Store(folder / FOLDER, results / FOLDER)


def plan(store: Store, chosen: Sequence[str]) -> list[Sweep]:
    """Return the sweeps of some stages, a task each, in the order to run them."""
    costs = Costs(store)
    return [
        Sweep([study], store, FOLDER, costs)
        for stage in chosen
        for study in recipes.get(stage).studies
    ]


def measure(store: Store) -> StepRule:
    """Return the scores of all stages, as far as the records go."""
    found = [_stage(name, store) for name in stages()]
    first = next(iter(store), None)
    versions = first.environment.get("versions", {}) if first else {}
    return StepRule(
        {name: versions[name] for name in ("hvadam", "torch") if name in versions},
        tuple(stage for stage in found if stage.endings),
    )


def _stage(name: str, store: Store) -> Stage:
    ledger = Ledger(store)
    references: dict[str, str] = {}
    endings: list[Ending] = []
    unfinished: list[str] = []
    for study in recipes.get(name).studies:
        reading = read_contest(study, ledger)
        if reading.results is None or not reading.finished:
            unfinished.append(study.task)
            continue
        references[study.task] = reference_of(reading.results)
        endings += _endings(reading.results, references[study.task])
    return Stage(name, references, tuple(endings), rank(endings), tuple(unfinished))


def reference_of(results: TaskResults) -> str:
    """Return who of Adam and NAdam has the lower loss on a problem, geometric mean over seeds."""
    names = [entry.entrant for entry in REFERENCES]
    return min(names, key=lambda name: _mean_log(_losses(results.contenders[name])))


def rank(endings: Sequence[Ending]) -> tuple[Standing, ...]:
    """Return how everyone stands over the problems, the best mean first."""
    everyone = dict.fromkeys(one.entrant for one in endings)
    found = [_standing([one for one in endings if one.entrant == name]) for name in everyone]
    return tuple(sorted(found, key=lambda one: one.mean))


def log_ratio(losses: Sequence[float], reference: Sequence[float]) -> float:
    """Return the logarithm of one geometric mean over another, within a factor of 10.

    Example:
        >>> round(math.exp(log_ratio([1e-3, 1e-5], [2e-4, 2e-4])), 9)
        0.5
        >>> math.exp(log_ratio([math.inf, 1.0], [1.0, 1.0]))  # one run diverged
        10.000000000000002
    """
    return min(CLIP, max(-CLIP, _mean_log(losses) - _mean_log(reference)))


def _endings(results: TaskResults, reference: str) -> list[Ending]:
    theirs = _losses(results.contenders[reference])
    found: list[Ending] = []
    for name, one in results.contenders.items():
        ours = _losses(one)
        found.append(
            Ending(
                task=results.task,
                kind="smooth" if results.task in SMOOTH else "noisy",
                entrant=name,
                lr=one.options["lr"],
                at_edge=one.at_edge,
                losses=tuple(ours),
                ratio=log_ratio(ours, theirs),
            )
        )
    return found


def _standing(endings: Sequence[Ending]) -> Standing:
    ratios = [one.ratio for one in endings]
    worst = max(endings, key=lambda one: one.ratio)
    return Standing(
        entrant=worst.entrant,
        mean=_mean(ratios),
        median=statistics.median(ratios),
        worst=worst.ratio,
        worst_on=worst.task,
        smooth=_half(endings, "smooth"),
        noisy=_half(endings, "noisy"),
        ahead=sum(ratio < 0 for ratio in ratios),
        problems=len(ratios),
        seeds=len(worst.losses),
    )


def _half(endings: Sequence[Ending], kind: Kind) -> float | None:
    ratios = [one.ratio for one in endings if one.kind == kind]
    return _mean(ratios) if ratios else None


def _losses(one: ContenderRuns) -> list[float]:
    """Return the final losses, in the order of the seeds."""
    runs: list[Record] = sorted(one.judged, key=lambda run: run.config.seed)
    return [statistics.final(run, LOSS) for run in runs]


def _mean_log(losses: Sequence[float]) -> float:
    return _mean(list(map(_log, losses)))


def _log(loss: float) -> float:
    return math.log(max(loss, TINY))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
