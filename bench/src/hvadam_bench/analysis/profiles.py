"""How soon contenders reach a fixed target, task by task, and over tasks as a profile.

The target of a task is what its reference reaches in median by 90% of its run, on the validation
split. A run reaches it at its first evaluation at least that good, counted in steps, which are
gradient evaluations where a step takes several; never is infinite. Over tasks, a profile shows the
share of tasks on which a contender took at most τ times as long as the soonest (Dolan and Moré,
2002), and a score sums it up as AlgoPerf does (Dahl et al., 2023).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import TaskResults
from hvadam_bench.analysis.statistics import Metric, Reached
from hvadam_bench.running.records import MEASURED, Record

# How much of its run the reference has to set the target.
SHARE = 0.9
# Up to how many times the soonest a profile's score looks.
LARGEST_TAU = 4.0

# (τ, share of tasks within τ of the best); the share holds from that τ to the next.
Profile = Sequence[tuple[float, float]]


def target(reference: Iterable[Record], metric: Metric, share: float = SHARE) -> float | None:
    """Return the best that the reference has shown by a share of its run, median over its runs.

    Returns:
        None if that is no number: most of the runs did not end.
    """
    found = [_best_by(run, metric, share) for run in reference]
    middle = statistics.median(found) if found else math.nan
    return middle if math.isfinite(middle) else None


def target_of(results: TaskResults) -> float | None:
    """Return the target that the reference of a task sets, if it sets one."""
    return target(results.reference.judged, results.metric) if results.reference else None


def middle_reached(runs: Iterable[Record], metric: Metric, goal: float) -> Reached:
    """Return when half of the runs had reached a target; infinite where fewer ever do.

    Of an even number that is the earlier of the two in the middle: between it and never lies
    nothing, and the reference's own median is reached by half of its runs.
    """
    never = Reached(math.inf, math.inf)
    reached = [statistics.time_to_target(run, metric, goal) or never for run in runs] or [never]
    middle = (len(reached) - 1) // 2
    steps, seconds = (sorted(ends)[middle] for ends in zip(*reached, strict=True))
    return Reached(steps, seconds)


def times_to_target(results: TaskResults, goal: float) -> dict[str, float]:
    """Return in how many steps half of each contender's judged runs have reached a target."""
    finished = [one for one in results.race if one.judged and not one.is_cut]
    return {one.name: middle_reached(one.judged, results.metric, goal).step for one in finished}


def profile(costs: Mapping[str, Mapping[str, float]]) -> dict[str, list[tuple[float, float]]]:
    """Return how often each is how close to the soonest.

    Args:
        costs: Task -> contender -> steps to the target; one that is missing never got there.

    Returns:
        Contender -> its profile, rising in τ from 1 on.
    """
    profiles: dict[str, list[tuple[float, float]]] = {}
    for name in dict.fromkeys(name for task in costs.values() for name in task):
        ratios = [
            _ratio(task.get(name, math.inf), min(task.values(), default=math.inf))
            for task in costs.values()
        ]
        taus = sorted({1.0, *(ratio for ratio in ratios if ratio < math.inf)})
        profiles[name] = [(tau, sum(r <= tau for r in ratios) / len(costs)) for tau in taus]
    return profiles


def score(profile: Profile, furthest: float = LARGEST_TAU) -> float:
    """Return the mean height of a profile between 1 and the furthest τ: 1 if always the soonest."""
    ends = [*(tau for tau, _ in profile[1:]), math.inf]
    area = 0.0
    for (tau, share), end in zip(profile, ends, strict=True):
        area += share * max(0.0, min(end, furthest) - tau)
    return area / (furthest - 1)


def _ratio(cost: float, best: float) -> float:
    if cost == best < math.inf:
        return 1.0
    return cost / best if best > 0 and cost < math.inf else math.inf


def _best_by(run: Record, metric: Metric, share: float) -> float:
    """Return the best value of a curve by a share of its steps; the worst of a run without end."""
    if run.status not in MEASURED:
        return metric.worst
    last = share * run.curve[-1].step
    values = [point.valid[metric.name] for point in run.curve if point.step <= last]
    numbers = [value for value in values if not math.isnan(value)]
    return (min if metric.goal == "min" else max)(numbers, default=metric.worst)
