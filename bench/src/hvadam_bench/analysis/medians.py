"""Who of a task has the best median, which run is in the middle, who is soon at a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.running.records import Record


def best_of(results: TaskResults, among: Iterable[ContenderRuns]) -> str | None:
    """Return who has the best median, if anyone has one."""
    medians = {runs.name: median_of(runs, results.metric) for runs in among if runs.judged}
    finite = {name: value for name, value in medians.items() if math.isfinite(value)}
    pick = min if results.metric.goal == "min" else max
    return pick(finite, key=lambda name: finite[name]) if finite else None


def median_of(runs: ContenderRuns, metric: statistics.Metric) -> float:
    """Return the median test value over the judged runs."""
    return statistics.median(statistics.final(run, metric) for run in runs.judged)


def middle_run(runs: Iterable[Record], metric: statistics.Metric) -> Record:
    """Return the run in the middle by its test value; of two in the middle, the worse."""
    sign = 1 if metric.goal == "min" else -1
    ordered = sorted(runs, key=lambda run: (sign * statistics.final(run, metric), run.config.seed))
    return ordered[len(ordered) // 2]


def target_of(results: TaskResults) -> float | None:
    """Return where the reference ended on the validation split, if it did."""
    if results.reference is None:
        return None
    goal = statistics.target(results.reference.judged, results.metric)
    return goal if math.isfinite(goal) else None


def median_to_target(
    runs: Iterable[Record],
    metric: statistics.Metric,
    goal: float,
    cost: Callable[[statistics.Reached], float],
) -> float:
    """Return what it took to reach a target; a run that never got there took for ever."""
    reached = [statistics.time_to_target(run, metric, goal) for run in runs]
    costs = [math.inf if one is None else cost(one) for one in reached]
    return statistics.summarize(costs).median if costs else math.inf
