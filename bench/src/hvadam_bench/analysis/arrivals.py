"""How many runs arrive at a solution, where a task says what one is.

Some tasks split into runs that solve them and runs that end elsewhere, whoever trained. Their
records measure `arrived`, 1 or 0, and the share of runs that arrive is told beside the loss.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

from hvadam_bench.analysis.grouping import TaskResults
from hvadam_bench.analysis.statistics import Interval, Metric, final

ARRIVED = Metric("arrived", "max")


class Arrivals(NamedTuple):
    """How many of n runs arrived, with Wilson's 95% interval of the share."""

    arrived: int
    n: int
    interval: Interval

    @property
    def share(self) -> float:
        """Return the share of runs that arrived; NaN of none."""
        return self.arrived / self.n if self.n else math.nan


def arrivals(results: TaskResults) -> dict[str, Arrivals]:
    """Return how many judged runs of each contender arrived; a run without an end has not.

    Returns:
        Nobody if no run says whether it arrived: the task knows no solution.
    """
    if ARRIVED.name not in results.measured:
        return {}
    counts = {
        one.name: (sum(final(run, ARRIVED) > 0 for run in one.judged), len(one.judged))
        for one in results.race
        if one.judged
    }
    return {name: Arrivals(*count, wilson(*count)) for name, count in counts.items()}


def is_solved(results: TaskResults) -> bool:
    """Tell whether some contender arrives in at least half of its runs, or nobody can tell.

    Where nobody does, losses compare failures, and there is no verdict.
    """
    found = arrivals(results).values()
    return not found or any(2 * one.arrived >= one.n for one in found)


def wilson(count: int, n: int, level: float = 0.95) -> Interval:
    """Return Wilson's interval of a share of which count among n were seen.

    Example:
        >>> [round(end, 3) for end in wilson(8, 10)[:2]]
        [0.49, 0.943]
    """
    if n == 0:
        return Interval(0.0, 1.0, level)
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, weight = count / n, z * z / n
    middle = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / n + weight / (4 * n)) / (1 + weight)
    return Interval(max(0.0, middle - half), min(1.0, middle + half), level)
