"""The learning rate that tuning chooses where several do equally well.

The best of a few noisy values is often at the side of a flat top, where another seed would have
chosen its neighbour and a little more would diverge. The rule here takes the middle of the top.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hvadam_bench.analysis.statistics import Metric, best_options, by_options, final, median
from hvadam_bench.running.records import Record


def plateau_options(
    tuning: Iterable[Record], metric: Metric, split_error: float = 0.0
) -> dict[str, Any]:
    """Return the options in the middle of the rates that tie with the best on the validation split.

    The plateau is the best rate and its neighbours, as far as each is within one standard error of
    the best: median over seeds, the same other options, no gap. Of two in the middle the better one
    is taken. Where there is one seed and no error of the split is given, this is `best_options`.

    Args:
        tuning: Runs of one contender on one task.
        metric: What counts.
        split_error: Standard error of the metric that the size of the validation split leaves.
    """
    runs = list(tuning)
    best = best_options(runs, metric)
    along = sorted(
        (own for own in by_options(runs).values() if _alike(own[0].config.options, best)),
        key=lambda own: own[0].config.options.get("lr", 0.0),
    )
    values = [median(final(run, metric, "valid") for run in own) for own in along]
    at = next(i for i, own in enumerate(along) if own[0].config.options == best)
    slack = standard_error(along, metric, split_error)

    def ties(i: int) -> bool:
        return abs(values[i] - values[at]) <= slack if math.isfinite(values[i]) else i == at

    below = len(list(itertools.takewhile(ties, reversed(range(at)))))
    above = len(list(itertools.takewhile(ties, range(at + 1, len(along)))))
    low, high = at - below, at + above
    middle = {(low + high) // 2, (low + high + 1) // 2}
    sign = 1 if metric.goal == "min" else -1
    chosen = min(sorted(middle), key=lambda i: sign * values[i])
    return dict(along[chosen][0].config.options)


def standard_error(
    trials: Sequence[Sequence[Record]], metric: Metric, split_error: float = 0.0
) -> float:
    """Return the standard error of one trial's value, over its seeds and the validation split.

    The variance between seeds is the median over trials: two seeds tell too little of one trial,
    and a trial at the brink of divergence would widen everybody's.

    Args:
        trials: The runs of each, which differ in their seed alone.
        metric: What counts.
        split_error: Standard error that the size of the validation split leaves.
    """
    means: list[float] = []
    for runs in trials:
        values = [final(run, metric, "valid") for run in runs]
        if len(values) > 1 and all(map(math.isfinite, values)):
            centre = math.fsum(values) / len(values)
            squares = math.fsum((value - centre) ** 2 for value in values)
            means.append(squares / (len(values) - 1) / len(values))
    return math.sqrt(split_error**2 + (median(means) if means else 0.0))


def _alike(options: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Tell whether options differ in nothing but the learning rate."""
    return {**options, "lr": None} == {**others, "lr": None}
