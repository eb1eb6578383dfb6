"""From records to numbers: where runs ended, medians and their intervals, curves, targets.

Everything here is a function of records and plain numbers; no framework is loaded. A run that
diverged, was pruned or failed has no value of its own and counts as worse than any that ended.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
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

    step: int
    seconds: float


class CurvePoint(NamedTuple):
    """A curve over seeds, at one step."""

    step: int
    seconds: float
    summary: Summary


class Sensitivity(NamedTuple):
    """How much the learning rate matters.

    Attributes:
        best: The best of them.
        low, high: The range around it, among those tried, that stays within the tolerance.
        decades: Its width, log10(high / low).
        values: Learning rate -> median value.
    """

    best: float
    low: float
    high: float
    decades: float
    values: Mapping[float, float]


def final(record: Record, metric: Metric, split: Literal["valid", "test"] = "test") -> float:
    """Return where a run ended; the worst if it did not get there."""
    if record.status not in MEASURED:
        return metric.worst
    value = record.test[metric.name] if split == "test" else record.curve[-1].valid[metric.name]
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
    """Return the middle value; unlike the standard library's never NaN beside infinities."""
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


def bootstrap(
    values: Sequence[float],
    statistic: Callable[[Sequence[float]], float] = median,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Return the percentile interval of a statistic, from as many values drawn again and again.

    The same values give the same interval, in whichever order. With very few values it is too
    narrow: for the median of three it is from the smallest to the largest, which covers the truth
    3 times in 4.

    Example:
        >>> bootstrap([1.0, 2.0, 3.0])
        Interval(low=1.0, high=3.0, level=0.95)
    """
    if not values:
        return Interval(math.nan, math.nan, level)
    rng, ordered = random.Random(seed), sorted(values)
    drawn = sorted(statistic(rng.choices(ordered, k=len(values))) for _ in range(RESAMPLES))
    tail = (1 - level) / 2
    return Interval(quantile(drawn, tail), quantile(drawn, 1 - tail), level)


def paired(
    contender: Iterable[Record], reference: Iterable[Record], metric: Metric
) -> list[tuple[float, float]]:
    """Return where both ended on the seeds that both have, the contender first."""
    ours = {record.config.seed: final(record, metric) for record in contender}
    theirs = {record.config.seed: final(record, metric) for record in reference}
    return [(ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]


def target(reference: Iterable[Record], metric: Metric) -> float:
    """Return what the reference ends at on the validation split, median over its runs."""
    return median(final(record, metric, "valid") for record in reference)


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


def profile(
    costs: Mapping[str, Mapping[str, float]], distance: Literal["ratio", "gap"] = "ratio"
) -> dict[str, list[tuple[float, float]]]:
    """Return how often each is how close to the best: profiles after Dolan and Moré (2002).

    Args:
        costs: Task -> contender -> what it cost, less is better: steps to the target, error,
            perplexity. A contender that is missing never got there.
        distance: Cost over the best cost of the task, from 1 on; or cost minus it, from 0 on.

    Returns:
        Contender -> (τ, share of tasks on which it is within τ of the best), rising in τ; the share
        holds from that τ to the next.

    Example:
        >>> steps = {"one": {"adam": 100.0, "sgd": 200.0}, "two": {"adam": 90.0, "sgd": 60.0}}
        >>> profile(steps)["adam"]
        [(1.0, 0.5), (1.5, 1.0)]
    """
    contenders = list(dict.fromkeys(name for task in costs.values() for name in task))
    start = 1.0 if distance == "ratio" else 0.0
    distances: dict[str, list[float]] = {name: [] for name in contenders}
    for task in costs.values():
        best = min(task.values(), default=math.inf)
        for name in contenders:
            cost = task.get(name, math.inf)
            if distance == "ratio" and best < 0:
                raise ValueError(f"profile: ratios need costs >= 0, got {best:g}; use 'gap'.")
            if cost == best < math.inf:
                distances[name].append(start)
            elif cost < math.inf:
                ratio = cost / best if best > 0 else math.inf
                distances[name].append(ratio if distance == "ratio" else cost - best)
    steps: dict[str, list[tuple[float, float]]] = {}
    for name, own in distances.items():
        taus = sorted({start, *(d for d in own if d < math.inf)})
        steps[name] = [(tau, sum(d <= tau for d in own) / len(costs)) for tau in taus]
    return steps


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
    return Sensitivity(best, low, high, math.log10(high / low), {lr: values[lr] for lr in rates})


def _between(low: float, high: float, weight: float) -> float:
    if math.isinf(low) and math.isinf(high):
        return 0.0
    if math.isinf(low) or math.isinf(high):
        return low if math.isinf(low) else high  # nothing lies between a number and infinity
    return (1 - weight) * low + weight * high
