"""How soon contenders reach a fixed target, task by task, and over tasks as a profile.

The target of a task is what its reference reaches in median by 90% of its run, on the validation
split. A run reaches it at its first evaluation at least that good, counted in steps, which are
gradient evaluations where a step takes several; never is infinite. Over tasks, a profile tells the
share of tasks on which a contender took at most τ times as long as the soonest (Dolan and Moré,
2002), and a score sums it up as AlgoPerf does (Dahl et al., 2023).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import TaskResults
from hvadam_bench.running.records import MEASURED, Record

# How much of its run the reference has to set the target.
SHARE = 0.9
# Up to how many times the soonest a profile's score looks.
FURTHEST = 4.0


def target(
    reference: Iterable[Record], metric: statistics.Metric, share: float = SHARE
) -> float | None:
    """Return the best that the reference has shown by a share of its run, median over its runs.

    Returns:
        None if that is no number: most of the runs did not end.
    """
    found = [_best_by(run, metric, share) for run in reference]
    middle = statistics.median(found) if found else math.nan
    return middle if math.isfinite(middle) else None


def times_to_target(results: TaskResults, goal: float) -> dict[str, float]:
    """Return in how many steps half of each contender's judged runs have reached a target.

    Of an even number that is the earlier of the two in the middle: between it and never lies
    nothing, and the reference's own median is reached by half of its runs.
    """
    found: dict[str, float] = {}
    for one in (one for one in results.race if one.judged and not one.is_cut):
        reached = [statistics.time_to_target(run, results.metric, goal) for run in one.judged]
        times = sorted(math.inf if point is None else point.step for point in reached)
        found[one.name] = times[(len(times) - 1) // 2]
    return found


def score(profile: Sequence[tuple[float, float]], furthest: float = FURTHEST) -> float:
    """Return the mean height of a profile between 1 and the furthest τ: 1 if always the soonest.

    Args:
        profile: (τ, share of tasks within τ of the best), as `statistics.profile` returns it; the
            share holds from that τ to the next.
        furthest: Where to stop looking.

    Example:
        >>> score([(1.0, 0.5), (2.5, 1.0)])
        0.75
    """
    ends = [*(tau for tau, _ in profile[1:]), math.inf]
    area = 0.0
    for (tau, share), end in zip(profile, ends, strict=True):
        area += share * max(0.0, min(end, furthest) - tau)
    return area / (furthest - 1)


def _best_by(run: Record, metric: statistics.Metric, share: float) -> float:
    """Return the best value of a curve by a share of its steps; the worst of a run without end."""
    if run.status not in MEASURED:
        return metric.worst
    last = share * run.curve[-1].step
    values = [point.valid[metric.name] for point in run.curve if point.step <= last]
    numbers = [value for value in values if not math.isnan(value)]
    return (min if metric.goal == "min" else max)(numbers, default=metric.worst)
