"""From records to numbers: where runs ended, medians with intervals, curves, the choice of options.

No framework is loaded here. A run that diverged, was pruned or failed has no value of its own and
counts as worse than any that ended.
"""

from __future__ import annotations

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


class Reached(NamedTuple):
    """When a run first was at least as good as a target, at the evaluation that showed it."""

    step: float
    seconds: float


class CurvePoint(NamedTuple):
    """A curve over seeds, at one step."""

    step: int
    seconds: float
    summary: Summary


def final(record: Record, metric: Metric, split: Literal["valid", "test"] = "test") -> float:
    """Return where a run ended; the worst if it did not get there."""
    if record.status not in MEASURED:
        return metric.worst
    measures = record.test if split == "test" else record.curve[-1].valid
    value = measures.get(metric.name, math.nan)  # another version of a task may not measure it
    return metric.worst if math.isnan(value) else value


def summarize(values: Iterable[float]) -> Summary:
    """Return the median and the quartiles of values."""
    ordered = sorted(values)
    if not ordered:
        return Summary(0, math.nan, math.nan, math.nan)
    return Summary(len(ordered), median(ordered), quantile(ordered, 0.25), quantile(ordered, 0.75))


def median(values: Iterable[float]) -> float:
    """Return the middle value; unlike the standard library's never NaN of infinities."""
    return quantile(sorted(values), 0.5)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of values in rising order, linear between neighbours; infinite ones too."""
    at = share * (len(ordered) - 1)
    low, high, weight = ordered[math.floor(at)], ordered[math.ceil(at)], at % 1
    if low == high or not weight:
        return low
    infinite = [end for end in (low, high) if math.isinf(end)]
    if infinite:  # nothing lies between a number and infinity
        return infinite[0] if len(infinite) == 1 else 0.0
    return (1 - weight) * low + weight * high


def bootstrap(values: Sequence[float], level: float = 0.95) -> Interval:
    """Return the percentile interval of the median, from as many values drawn again and again.

    The same values give the same interval, in whichever order. With very few values it is too
    narrow: of three it is from the smallest to the largest, which covers the truth 3 times in 4.
    Not `scipy.stats.bootstrap`, which makes NaN of the infinities of runs that diverged.
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
    other options, no gap. Of two in the middle the better one is taken. `split_error` is the
    standard error that the size of the validation split leaves; where it is 0 and there is one
    seed, this is `best_options`.
    """
    runs = list(tuning)
    best = best_options(runs, metric)
    others = {**best, "lr": None}
    along = [
        own for own in by_options(runs).values() if {**own[0].config.options, "lr": None} == others
    ]
    along.sort(key=lambda own: own[0].config.options.get("lr", 0.0))
    values = [median(final(run, metric, "valid") for run in own) for own in along]
    low = high = next(i for i, own in enumerate(along) if own[0].config.options == best)
    top, slack = values[low], standard_error(along, metric, split_error)

    def ties(i: int) -> bool:
        return i in range(len(values)) and abs(values[i] - top) <= slack

    while ties(low - 1):
        low -= 1
    while ties(high + 1):
        high += 1
    middle = sorted({(low + high) // 2, (low + high + 1) // 2})
    sign = 1 if metric.goal == "min" else -1
    return dict(along[min(middle, key=lambda i: sign * values[i])][0].config.options)


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


def by_rate(runs: Iterable[Record], metric: Metric) -> dict[float, float]:
    """Return the validation value at each learning rate, by the best of its other options."""
    values: dict[float, float] = {}
    for own in by_options(runs).values():
        lr = own[0].config.options["lr"]
        value = median(final(run, metric, "valid") for run in own)
        if lr not in values or metric.improves(value, values[lr]):
            values[lr] = value
    return {lr: values[lr] for lr in sorted(values)}
