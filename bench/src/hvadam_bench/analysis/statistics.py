"""From records to numbers: where runs ended, medians with intervals, curves, the choice of options.

No framework is loaded here. A run that diverged, was pruned or failed has no value of its own and
counts as worse than any that ended.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from statistics import variance
from typing import Any, Literal, NamedTuple

from hvadam_bench.running.records import MEASURED, Record

RESAMPLES = 2000


class Metric(NamedTuple):
    """A measure of a task, and whether more of it is better."""

    name: str
    goal: Literal["min", "max"]

    @classmethod
    def of(cls, record: Record) -> Metric:
        """Return the measure that counts in a record's task."""
        return cls(record.metric, record.goal)

    @property
    def worst(self) -> float:
        """Return what a run without an end counts as."""
        return math.inf if self.goal == "min" else -math.inf

    def improves(self, value: float, other: float) -> bool:
        """Tell whether a value is strictly better than another."""
        return value < other if self.goal == "min" else value > other


class Summary(NamedTuple):
    """Values over seeds: median and quartiles. n counts the runs without an end too."""

    n: int
    median: float
    lower: float
    upper: float


class Interval(NamedTuple):
    """A range that covers the truth at about the given level."""

    low: float
    high: float
    level: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and self.low <= value <= self.high


class Reached(NamedTuple):
    """When a run first was at least as good as a target, at the evaluation that showed it."""

    step: float
    seconds: float


class CurvePoint(NamedTuple):
    """A curve over seeds, at one step."""

    step: int
    seconds: float
    summary: Summary


class Sensitivity(NamedTuple):
    """The best learning rate, the range around it that does nearly as well, and every median."""

    best: float
    low: float
    high: float
    decades: float  # log10(high / low)
    values: Mapping[float, float]


def final(record: Record, metric: Metric, split: Literal["valid", "test"] = "test") -> float:
    """Return where a run ended; the worst if it did not get there."""
    if record.status not in MEASURED:
        return metric.worst
    measures = record.test if split == "test" else record.curve[-1].valid
    value = measures.get(metric.name, math.nan)  # another version of a task may not measure it
    return metric.worst if math.isnan(value) else value


def summarize(values: Iterable[float]) -> Summary:
    """Return the median and the quartiles of values.

    Example:
        >>> summarize([1.0, 2.0, 3.0, 4.0, math.inf])
        Summary(n=5, median=3.0, lower=2.0, upper=4.0)
    """
    ordered = sorted(values)
    if not ordered:
        return Summary(0, math.nan, math.nan, math.nan)
    return Summary(len(ordered), median(ordered), quantile(ordered, 0.25), quantile(ordered, 0.75))


def median(values: Iterable[float]) -> float:
    """Return the middle value; unlike the standard library's never NaN of infinities."""
    return quantile(sorted(values), 0.5)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of values in rising order, linear between neighbours.

    Example:
        >>> quantile([0.0, 10.0, 20.0], 0.25)
        5.0
    """
    at = share * (len(ordered) - 1)
    low, high = ordered[math.floor(at)], ordered[math.ceil(at)]
    # Weights of 0 would make NaN of infinities.
    return low if low == high or at == math.floor(at) else _between(low, high, at % 1)


def bootstrap(values: Sequence[float], level: float = 0.95) -> Interval:
    """Return the percentile interval of the median, from as many values drawn again and again.

    The same values give the same interval, in whichever order. With very few values it is too
    narrow: of three it is from the smallest to the largest, which covers the truth 3 times in 4.
    Not `scipy.stats.bootstrap`, which makes NaN of the infinities of runs that diverged.

    Example:
        >>> bootstrap([1.0, 2.0, 3.0])
        Interval(low=1.0, high=3.0, level=0.95)
    """
    if not values:
        return Interval(math.nan, math.nan, level)
    rng, ordered = random.Random(0), sorted(values)
    drawn = sorted(median(rng.choices(ordered, k=len(values))) for _ in range(RESAMPLES))
    tail = (1 - level) / 2
    return Interval(quantile(drawn, tail), quantile(drawn, 1 - tail), level)


def paired(
    contender: Iterable[Record], reference: Iterable[Record], metric: Metric
) -> list[tuple[float, float]]:
    """Return where both ended on the seeds that both have, the contender first."""
    ours = {record.config.seed: final(record, metric) for record in contender}
    theirs = {record.config.seed: final(record, metric) for record in reference}
    return [(ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]


def time_to_target(record: Record, metric: Metric, target: float) -> Reached | None:
    """Return when a run's validation value first was as good as a target, None if never.

    A run that diverged later has reached what it reached before.
    """
    for point in record.curve:
        value = point.valid.get(metric.name, math.nan)
        if value == target or metric.improves(value, target):
            return Reached(point.step, point.seconds)
    return None


def curves(records: Iterable[Record], metric: Metric) -> list[CurvePoint]:
    """Return validation values over steps; a run that stopped early is the worst from there on."""
    runs = list(records)
    by_step = [{point.step: point for point in run.curve} for run in runs]
    found: list[CurvePoint] = []
    for step in sorted(set().union(*by_step)):
        points = [run[step] for run in by_step if step in run]
        values = [point.valid.get(metric.name, metric.worst) for point in points]
        values += [metric.worst] * (len(runs) - len(points))
        seconds = median(point.seconds for point in points)
        found.append(CurvePoint(step, seconds, summarize(values)))
    return found


def options_key(options: Mapping[str, Any]) -> str:
    """Return a name that equal options share."""
    return json.dumps(options, sort_keys=True)


def by_options(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Return the runs that differ in their seed alone, together, by `options_key`."""
    grouped: dict[str, list[Record]] = {}
    for record in records:
        grouped.setdefault(options_key(record.config.options), []).append(record)
    return grouped


def best_options(tuning: Iterable[Record], metric: Metric) -> dict[str, Any]:
    """Return the options whose runs ended best on the validation split, by median over seeds.

    Equals go to the smaller learning rate: if all diverged, that is the more hopeful end.
    """

    def merit(runs: list[Record]) -> tuple[float, float]:
        value = median(final(run, metric, "valid") for run in runs)
        return (value if metric.goal == "min" else -value, runs[0].config.options.get("lr", 0.0))

    chosen = min(by_options(tuning).values(), key=merit)
    return dict(chosen[0].config.options)


def plateau_options(
    tuning: Iterable[Record], metric: Metric, split_error: float = 0.0
) -> dict[str, Any]:
    """Return the options in the middle of the rates that tie with the best on the validation split.

    The best of a few noisy values is often at the side of a flat top, where another seed would have
    chosen its neighbour and a little more would diverge. The plateau is the best rate and its
    neighbours, as far as each is within one standard error of the best: median over seeds, the same
    other options, no gap. Of two in the middle the better one is taken. Where there is one seed and
    no error of the split is given, this is `best_options`.

    Args:
        tuning: Runs of one contender on one task.
        metric: What counts.
        split_error: Standard error of the metric that the size of the validation split leaves.
    """
    runs = list(tuning)
    best = best_options(runs, metric)
    along = sorted(
        (
            own
            for own in by_options(runs).values()
            if _but_rate(own[0].config.options) == _but_rate(best)
        ),
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
    """
    means: list[float] = []
    for runs in trials:
        values = [final(run, metric, "valid") for run in runs]
        if len(values) > 1 and all(map(math.isfinite, values)):
            means.append(variance(values) / len(values))
    return math.sqrt(split_error**2 + (median(means) if means else 0.0))


def sensitivity(tuning: Iterable[Record], metric: Metric, tolerance: float = 0.01) -> Sensitivity:
    """Return how wide a range of learning rates is within a share of the best value.

    Args:
        tuning: Runs of one contender on one task. Where other options were tried at the same rate,
            the best of them counts.
        metric: What counts.
        tolerance: 0.01 for within 1% of the best value.
    """
    values: dict[float, float] = {}
    for runs in by_options(tuning).values():
        lr = runs[0].config.options["lr"]
        value = median(final(run, metric, "valid") for run in runs)
        if lr not in values or metric.improves(value, values[lr]):
            values[lr] = value
    rates = sorted(values)
    pick = min if metric.goal == "min" else max
    best = pick(rates, key=lambda lr: values[lr])
    slack = tolerance * abs(values[best])
    limit = values[best] + (slack if metric.goal == "min" else -slack)

    def near(lr: float) -> bool:
        return not metric.improves(limit, values[lr])

    below = list(itertools.takewhile(near, reversed(rates[: rates.index(best) + 1])))
    above = list(itertools.takewhile(near, rates[rates.index(best) :]))
    low, high = min(below, default=best), max(above, default=best)
    decades = 0.0 if low == high else math.log10(high / low) if low else math.inf
    return Sensitivity(best, low, high, decades, {lr: values[lr] for lr in rates})


def _between(low: float, high: float, weight: float) -> float:
    if math.isinf(low) and math.isinf(high):
        return 0.0
    if math.isinf(low) or math.isinf(high):
        return low if math.isinf(low) else high  # nothing lies between a number and infinity
    return (1 - weight) * low + weight * high


def _but_rate(options: Mapping[str, Any]) -> dict[str, Any]:
    return {**options, "lr": None}
