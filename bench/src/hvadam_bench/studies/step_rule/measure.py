"""The scores of candidates over many small problems, against the best of some references.

All stages share one store: what an earlier one has tuned or judged, a later one does not run again.
The exact test of a candidate over the problems is `analysis.sign_flips.p_value` of its ratios.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import ContenderRuns
from hvadam_bench.running.records import Store
from hvadam_bench.studies._study import Place
from hvadam_bench.studies.step_rule.plan import Plan
from hvadam_bench.sweeping.contest_results import read_contest
from hvadam_bench.sweeping.costs import Costs
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.search import Contest

if TYPE_CHECKING:
    from hvadam_bench.sweeping.sweep import Sweep

FOLDER = "step_rule"
CLIP = math.log(10)
TINY = 1e-300  # losses below it are rounding; a logarithm needs more than 0
LOSS = statistics.Metric("loss", "min")

Kind = Literal["smooth", "noisy"]


@dataclass(frozen=True)
class Ending:
    """How one entrant ended on one problem."""

    task: str
    kind: Kind
    entrant: str
    lr: float  # that tuning chose
    at_edge: bool  # whether that is still the lowest or the highest rate tried
    losses: tuple[float, ...]  # of the judged seeds; infinite if a run diverged
    ratio: float  # logarithm of their geometric mean over that of the reference, clipped


@dataclass(frozen=True)
class Standing:
    """One entrant over all problems; ratios are logarithms, below 0 is ahead of the reference."""

    entrant: str
    mean: float
    median: float
    worst: float
    worst_on: str
    smooth: float | None  # the mean over this half; None if no problem of it is finished
    noisy: float | None
    ahead: int  # on how many problems the ratio is below 0
    problems: int
    seeds: int  # on each problem


@dataclass(frozen=True)
class Stage:
    """One stage as far as its problems are finished."""

    name: str
    references: Mapping[str, str]  # problem -> the entrant whose loss the others' are divided by
    endings: tuple[Ending, ...]  # of everyone on every finished problem
    standings: tuple[Standing, ...]  # the best first
    unfinished: tuple[str, ...]  # problems with runs to come


@dataclass(frozen=True)
class StepRule:
    """The stages, and the versions of the packages that they were measured with."""

    versions: Mapping[str, str]
    stages: tuple[Stage, ...]


def measure(plan: Plan, place: Place) -> dict[str, StepRule]:
    """Make the runs of the planned stages, and score all stages as far as the records go."""
    store = Store(place.runs / FOLDER, place.results / FOLDER)
    if plan.run:
        place.sweep(plan_sweeps(plan, store))
    return {FOLDER: score(plan, store)}


def plan_sweeps(plan: Plan, store: Store) -> list[Sweep]:
    """Return a sweep for each problem of the planned stages, in the order to run them."""
    from hvadam_bench.sweeping.sweep import Sweep  # which loads a framework

    costs = Costs(store)
    return [Sweep([one], store, FOLDER, costs) for name in plan.run for one in plan.stages[name]]


def score(plan: Plan, store: Store) -> StepRule:
    """Return the scores of all stages that have a finished problem."""
    ledger = Ledger(store)
    found = [_score_stage(name, own, plan, ledger) for name, own in plan.stages.items()]
    first = next(iter(store), None)
    versions = first.environment.get("versions", {}) if first else {}
    return StepRule(
        {name: versions[name] for name in ("hvadam", "torch") if name in versions},
        tuple(stage for stage in found if stage.endings),
    )


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
    return min(CLIP, max(-CLIP, mean_log(losses) - mean_log(reference)))


def mean_log(losses: Sequence[float]) -> float:
    """Return the logarithm of the geometric mean of losses."""
    return _mean([math.log(max(loss, TINY)) for loss in losses])


def _score_stage(name: str, contests: Sequence[Contest], plan: Plan, ledger: Ledger) -> Stage:
    references: dict[str, str] = {}
    endings: list[Ending] = []
    unfinished: list[str] = []
    for reading in (read_contest(one, ledger) for one in contests):
        task, results = reading.contest.task, reading.results
        if results is None or not reading.finished:
            unfinished.append(task)
            continue
        losses = {name: _losses(one) for name, one in results.contenders.items()}
        best = references[task] = min(plan.references, key=lambda name: mean_log(losses[name]))
        kind = "smooth" if task in plan.smooth else "noisy"
        for entrant, one in results.contenders.items():
            own, ratio = losses[entrant], log_ratio(losses[entrant], losses[best])
            endings.append(Ending(task, kind, entrant, one.options["lr"], one.at_edge, own, ratio))
    return Stage(name, references, tuple(endings), rank(endings), tuple(unfinished))


def _standing(endings: Sequence[Ending]) -> Standing:
    ratios = [one.ratio for one in endings]
    smooth, noisy = (
        [one.ratio for one in endings if one.kind == kind] for kind in ("smooth", "noisy")
    )
    worst = max(endings, key=lambda one: one.ratio)
    return Standing(
        entrant=worst.entrant,
        mean=_mean(ratios),
        median=statistics.median(ratios),
        worst=worst.ratio,
        worst_on=worst.task,
        smooth=_mean(smooth) if smooth else None,
        noisy=_mean(noisy) if noisy else None,
        ahead=sum(ratio < 0 for ratio in ratios),
        problems=len(ratios),
        seeds=len(worst.losses),
    )


def _losses(one: ContenderRuns) -> tuple[float, ...]:
    """Return the final losses, in the order of the seeds."""
    runs = sorted(one.judged, key=lambda run: run.config.seed)
    return tuple(statistics.final(run, LOSS) for run in runs)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
