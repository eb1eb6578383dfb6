"""Finished studies as numbers of few digits, the way ``results/evidence.json`` keeps them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.analysis.verdicts import best_and_ties, best_of, leaning, median_of, standing
from hvadam_bench.contenders import OURS, REFERENCE
from hvadam_bench.running.config import entrant
from hvadam_bench.running.records import MEASURED, Point, Record
from hvadam_bench.studies.evidence.parts import PartResults
from hvadam_bench.studies.evidence.result import (
    AblationEvidence,
    Duel,
    Entrant,
    Hidden,
    Level,
    Number,
    Pace,
    Sooner,
    TaskEvidence,
    TracePoint,
)
from hvadam_bench.sweeping.recipes.gan import NO_HIDDEN_STEP
from hvadam_bench.sweeping.search import ladder

USUAL = entrant(OURS, "usual")
STILL = entrant(OURS, NO_HIDDEN_STEP)
ADAMW = "adamw"
# Whose curves are drawn, beside the best of the others.
DRAWN = (OURS, STILL, REFERENCE, ADAMW)
DIGITS = 6  # significant ones, of the numbers that are kept
# The gain from which on the hidden step is as long as the hidden vector times the learning rate.
AWAKE = 1.0


def rounded(x: float | None) -> Number:
    """Return a number as it is kept: few digits, and None for what is no number.

    Example:
        >>> rounded(1 / 3), rounded(math.nan), rounded(-math.inf)
        (0.333333, None, -inf)
    """
    if x is None or math.isnan(x):
        return None
    return float(f"{x:.{DIGITS}g}")


def finite(x: float) -> Number:
    """Return a value as it is kept; None if its run came to no end."""
    return rounded(x) if math.isfinite(x) else None


def shortfall(value: float, best: float) -> float:
    """Return how many percent a value is from the best one; infinite for what diverged.

    Example:
        >>> round(shortfall(99.0, 100.0), 6), shortfall(math.inf, 5.0)
        (1.0, inf)
    """
    if not math.isfinite(value):
        return math.inf
    return 100 * abs(value - best) / abs(best) if best else math.nan


def duel(found: statistics.Comparison, metric: statistics.Metric, base: float) -> Duel:
    """Return a paired comparison, also as percents of a base, in which more is better."""
    return Duel(**_duel(found, metric, base))


def describe_task(reading: PartResults) -> TaskEvidence:
    """Return a finished study: everyone in it, and HVAdam beside each of the others."""
    task = _results_of(reading)
    tied = best_and_ties(task, task.race)
    ours, reference = task.contenders.get(OURS), task.reference
    best = best_of(task, [one for one in task.race if not _is_ours(one.name)])
    drawn = [name for name in (*DRAWN, best) if name in task.contenders]
    entrants = {
        one.name: Entrant(
            **_measured(one, task),
            tied=one.name in tied,
            against_adam=_against(task, one, reference) if reference else None,
            pace=_pace(one, reference) if reference else None,
        )
        for one in task.race
    }
    rivals = [one for one in task.race if ours and one is not ours]
    curves = {
        name: statistics.curves(task.contenders[name].judged, task.metric)
        for name in dict.fromkeys(drawn)
    }
    return TaskEvidence(
        **_conditions(reading, task),
        comparisons=max(1, len(task.race) - 1),
        contenders=entrants,
        best_other=best,
        duels={one.name: found for one in rivals if ours and (found := _against(task, ours, one))},
        sooner=_sooner(task, ours, reference) if ours and reference else None,
        hidden=_awakening(ours.judged) if ours else None,
        curves={
            name: tuple(
                (
                    point.step,
                    rounded(point.summary.median),
                    rounded(point.summary.lower),
                    rounded(point.summary.upper),
                )
                for point in points
            )
            for name, points in curves.items()
        },
    )


def describe_ablation(reading: PartResults) -> AblationEvidence:
    """Return the levels of the ablation, each beside the one before it and beside the first."""
    task = _results_of(reading)
    everyone = [task.contenders[entry.entrant] for entry in reading.study.entries]
    comparisons = len(everyone) - 1

    def beside(one: ContenderRuns, other: ContenderRuns) -> Duel | None:
        if one is other:
            return None
        found = statistics.compare(one.judged, other.judged, task.metric, comparisons=comparisons)
        return duel(found, task.metric, median_of(other, task.metric))

    levels = tuple(
        Level(
            **_measured(one, task),
            name=one.name,
            against_previous=beside(one, everyone[max(0, i - 1)]),
            against_first=beside(one, everyone[0]),
            trace=_trace(one.judged),
            hidden=_awakening(one.judged),
        )
        for i, one in enumerate(everyone)
    )
    conditions = _conditions(reading, task)
    return AblationEvidence(**conditions, comparisons=comparisons, levels=levels)


def _results_of(reading: PartResults) -> TaskResults:
    assert reading.results is not None, "only finished studies are described"
    return reading.results


def _is_ours(name: str) -> bool:
    """Return whether this is HVAdam, in whichever variant."""
    return name.partition(" (")[0] == OURS


def _duel(found: statistics.Comparison, metric: statistics.Metric, base: float) -> dict[str, Any]:
    ends = (found.difference, found.interval.low, found.interval.high)
    sign = 1 if metric.goal == "max" else -1
    scale = 100 * sign / abs(base) if math.isfinite(base) and base else math.nan
    middle, low, high = (end * scale for end in ends)
    return {
        "n": found.n,
        **dict(zip(("difference", "low", "high"), map(rounded, ends), strict=True)),
        "level": rounded(found.interval.level),
        "p": rounded(found.p),
        "standing": standing(found),
        "leaning": leaning(found),
        "percent": (rounded(middle), *map(rounded, sorted((low, high)))),
    }


def _conditions(reading: PartResults, task: TaskResults) -> dict[str, Any]:
    longest = max((run for one in task.contenders.values() for run in one.judged), key=_steps)
    return {
        "part": reading.part,
        "task": task.task,
        "title": task.title,
        "metric": task.metric.name,
        "goal": task.metric.goal,
        "measured": tuple(sorted(task.measured)),
        "settings": _plain(task.settings),
        "seeds": reading.study.seeds,
        "trials": max(len(arm.trials) for arm in reading.study.arms()),
        "steps": _steps(longest),
        "evaluations": len(longest.curve) - 1,
        "noise": _noise(task),
    }


def _measured(one: ContenderRuns, task: TaskResults) -> dict[str, Any]:
    values = [statistics.final(run, task.metric) for run in one.judged]
    interval = statistics.bootstrap(values)
    rates = [run for run in one.tuning if "lr" in run.config.options]
    found = statistics.sensitivity(rates, task.metric) if rates else None
    return {
        "options": _plain(one.options),
        "basis": _plain(one.judged[0].basis.get("options", {})),
        "n": len(values),
        "values": tuple(map(finite, values)),
        "median": finite(statistics.median(values)),
        "low": rounded(interval.low),
        "high": rounded(interval.high),
        "diverged": sum(run.status not in MEASURED for run in one.judged),
        "collapsed": sum(run.status == "collapsed" for run in one.judged),
        "trials": len(one.trials),
        "trials_lost": sum(run.status not in MEASURED for run in one.tuning),
        "at_edge": one.at_edge,
        "third": _off(found, -1),
        "triple": _off(found, 1),
        "rates": {f"{lr:g}": finite(v) for lr, v in found.values.items()} if found else {},
    }


def _off(found: statistics.Sensitivity | None, rungs: int) -> Number:
    """Return what a rate so many rungs off the best costs; a rung is a factor of about 3."""
    other = found.values.get(ladder(found.best, rungs)) if found else None
    if found is None or other is None:
        return None
    return rounded(shortfall(other, found.values[found.best]))


def _against(task: TaskResults, one: ContenderRuns, other: ContenderRuns) -> Duel | None:
    if one is other:
        return None
    return duel(task.against(one, other), task.metric, median_of(other, task.metric))


def _sooner(task: TaskResults, ours: ContenderRuns, reference: ContenderRuns) -> Sooner:
    """Return the steps to where Adam's run with the same seed ended, beside Adam's own."""
    own = {run.config.seed: run for run in ours.judged}
    shares: list[float] = []
    for run in reference.judged:
        goal = statistics.final(run, task.metric, "valid")
        theirs = statistics.time_to_target(run, task.metric, goal)
        if run.config.seed not in own or not math.isfinite(goal) or not theirs or not theirs.step:
            continue
        reached = statistics.time_to_target(own[run.config.seed], task.metric, goal)
        shares.append(reached.step / theirs.step if reached else math.inf)
    metric = statistics.Metric("steps", "min")
    found = statistics.compare_pairs([(share, 1.0) for share in shares], metric)
    return Sooner(**_duel(found, metric, 1.0), never=sum(map(math.isinf, shares)))


def _pace(one: ContenderRuns, reference: ContenderRuns) -> Pace | None:
    """Return the time of a step beside Adam's, seed by seed."""
    ours, theirs = (
        {
            run.config.seed: run.train_seconds / _steps(run)
            for run in runs.timed
            if run.status in MEASURED and _steps(run) and run.train_seconds
        }
        for runs in (one, reference)
    )
    ratios = [ours[seed] / theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
    if not ratios:
        return None
    interval = statistics.bootstrap(ratios)
    ends = (statistics.median(ratios), interval.low, interval.high)
    return Pace(len(ratios), *map(rounded, ends))


def _awakening(runs: Sequence[Record]) -> Hidden | None:
    """Return when the hidden step first was of the size of the hidden vector, and how often."""
    watched = [run for run in runs if any(point.diagnostics for point in run.curve)]
    if not watched:
        return None
    woke = [
        next((p.step for p in r.curve if _watch(p, "hidden_gain") >= AWAKE), None) for r in runs
    ]
    steps = [step for step in woke if step is not None]
    ends = [run.curve[-1] for run in watched]
    return Hidden(
        runs=len(watched),
        woke=len(steps),
        step=rounded(statistics.median(steps)) if steps else None,
        gain=_middle(_watch(end, "hidden_gain") for end in ends),
        restarts=_middle(_watch(end, "restarts") for end in ends),
    )


def _trace(runs: Sequence[Record]) -> tuple[TracePoint, ...]:
    """Return gain, alignment and restarts over a run, medians over seeds."""
    rows: list[TracePoint] = []
    for step in sorted({p.step for run in runs for p in run.curve if p.diagnostics and p.step}):
        points = [p for run in runs for p in run.curve if p.step == step]
        keys = ("hidden_gain", "alignment", "restarts")
        gain, alignment, restarts = (_middle(_watch(p, key) for p in points) for key in keys)
        rows.append((step, gain, alignment, restarts))
    return tuple(rows)


def _watch(point: Point, key: str) -> float:
    """Return a diagnostic of the first network; NaN where there is none."""
    networks: Iterable[Mapping[str, float]] = point.diagnostics.values()
    return next((network[key] for network in networks if key in network), math.nan)


def _middle(values: Iterable[float]) -> Number:
    seen = [value for value in values if not math.isnan(value)]
    return rounded(statistics.median(seen)) if seen else None


def _noise(task: TaskResults) -> Number:
    """Return how much HVAdam's validation value varies with the seed: its standard deviation."""
    ours = task.contenders.get(OURS)
    ends = [statistics.final(run, task.metric, "valid") for run in ours.judged] if ours else []
    seen = [end for end in ends if math.isfinite(end)]
    if len(seen) < statistics.FEWEST_PAIRS:
        return None
    mean = math.fsum(seen) / len(seen)
    return rounded(math.sqrt(math.fsum((x - mean) ** 2 for x in seen) / (len(seen) - 1)))


def _steps(run: Record) -> int:
    return run.curve[-1].step if run.curve else 0


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as JSON gives them back: lists instead of tuples."""
    return json.loads(json.dumps(dict(options)))
