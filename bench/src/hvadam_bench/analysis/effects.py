"""How far one contender is ahead of another over the same seeds, and whether that is a finding.

Differences are taken seed by seed, positive where ours is better: the logarithm of the ratio of
two losses, or points of accuracy. A verdict weighs them against chance and against the smallest
effect that matters:

- *equal*: the 90% interval lies inside the smallest effect on both sides (two one-sided tests at
  5%). A difference that is no chance, but surely too small to matter, is equal.
- *ahead*, *behind*: not equal, and the sign-flip test's p, after Holm's correction over all the
  contenders of the task, is at most 0.05.
- *undecided*: neither, or fewer than ten pairs.

Fewer than ten pairs only *lean*: to equal as above, or to a side where chance alone does as much at
most one time in four, without a correction. A judgement tells how many more seeds would decide.

A run that diverged (an infinite loss) has no ratio. A difference counts as a factor of 100 or as
100 points at most, either way, and two runs that both diverged count as no difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, fmean, stdev
from typing import Literal, NamedTuple

import numpy as np

from hvadam_bench.analysis import sign_flips
from hvadam_bench.analysis.statistics import Interval, Metric

Decided = Literal["ahead", "behind", "equal"]
Verdict = Literal["ahead", "behind", "equal", "undecided"]

# The level of the test, and with it of the intervals: 95% to tell, 90% to call equal.
ALPHA = 0.05
# Fewer pairs than this decide nothing: five that agree are chance once in sixteen times.
FEWEST_PAIRS = 10
# The p, before any correction, up to which fewer pairs lean: three that agree.
LEANING = 0.25
# The furthest that one seed's difference counts: a factor of 100, or 100 points.
FURTHEST = 100.0
# The smallest effect that matters where a task says nothing: of mini-batch tasks.
SMALLEST_FACTOR, SMALLEST_POINTS = 1.005, 0.3
# Why there is no verdict.
FEW, CHANCE = f"n < {FEWEST_PAIRS}", "the difference may be chance"
# What "detected" means for a task's power, and by how many synthetic studies it is found.
POWER, STUDIES = 0.8, 4000


@dataclass(frozen=True)
class Scale:
    """What a difference is measured in, and how much of it matters.

    Attributes:
        kind: "factor" where differences are logarithms of ratios, "points" where they are plain.
        smallest: The smallest effect that matters: a factor above 1, or points.
        point: How much of the measure a point is: 0.01 of one that ends at 1.
        goal: What is better, in points: "min" for measures below 0, which have no ratios.
    """

    kind: Literal["factor", "points"]
    smallest: float
    point: float = 1.0
    goal: Literal["min", "max"] = "max"

    @property
    def margin(self) -> float:
        """Return the smallest effect that matters, as a difference."""
        return math.log(self.smallest) if self.kind == "factor" else self.smallest * self.point

    @property
    def furthest(self) -> float:
        """Return the largest difference that one seed counts."""
        return math.log(FURTHEST) if self.kind == "factor" else FURTHEST * self.point

    def difference(self, ours: float, theirs: float) -> float:
        """Return how much better ours is, without bounds: infinite versus a run that diverged."""
        if math.isnan(ours) or math.isnan(theirs):
            raise ValueError(f"Scale: values must be numbers, got {ours} and {theirs}.")
        if ours == theirs:
            return 0.0
        if self.kind == "points":
            return ours - theirs if self.goal == "max" else theirs - ours
        if min(ours, theirs) < 0:
            raise ValueError(f"Scale: ratios need values >= 0, got {min(ours, theirs):g}.")
        log_ours, log_theirs = (math.log(x) if x > 0 else -math.inf for x in (ours, theirs))
        return log_theirs - log_ours

    def told(self, difference: float) -> float:
        """Return a difference as people read it: a factor (1 for none), or points."""
        return math.exp(difference) if self.kind == "factor" else difference


def scale_for(metric: Metric, values: Iterable[float], smallest: float | None = None) -> Scale:
    """Return how differences in a measure are told, given where all runs of a task ended.

    Factors where less is better, of values that have ratios; otherwise points, hundredths of 1 or
    of 100, or of the furthest value beyond that. `smallest` is what the task says that matters.
    """
    ends = [value for value in values if math.isfinite(value)]
    if metric.goal == "min" and min(ends, default=0.0) >= 0:
        return Scale("factor", smallest or SMALLEST_FACTOR)
    own = smallest if metric.goal == "max" else None  # a factor says nothing of points
    largest = max(map(abs, ends), default=1.0)
    point = 0.01 if largest <= 1 else max(1.0, largest / 100)
    return Scale("points", own or SMALLEST_POINTS, point, metric.goal)


@dataclass(frozen=True)
class Effect:
    """How far ours is ahead of theirs; all but `n`, `p` and `clipped` are differences."""

    scale: Scale
    n: int  # pairs
    estimate: float  # the mean difference; positive is better
    sd: float  # of the differences; NaN of fewer than two
    interval: Interval  # 95%, of the mean
    narrow: Interval  # 90%; must lie inside the smallest effect to be called equal
    p: float  # two-sided, before any correction
    noise: float  # the test set's standard error that the intervals and p hold
    clipped: int  # how many differences were beyond the furthest that counts


class Judgement(NamedTuple):
    """An effect, and what it amounts to among the contenders of a task."""

    effect: Effect
    p: float  # after Holm's correction
    verdict: Verdict
    reason: str = ""  # why it is undecided
    comparisons: int = 1  # how many were judged together
    leaning: Decided | None = None  # what fewer pairs than a verdict needs lean to

    @property
    def word(self) -> str:
        """Return the verdict, or what the pairs lean to."""
        return f"leans {self.leaning}" if self.leaning else self.verdict

    @property
    def side(self) -> Decided | None:
        """Return what the verdict is or leans to; None of one that does neither."""
        return self.leaning if self.verdict == "undecided" else self.verdict

    @property
    def more_seeds(self) -> int | None:
        """Return how many more seeds would decide; None if no more are needed, or none would."""
        if self.reason not in (FEW, CHANCE):
            return None
        needed = seeds_needed(self.effect, self.comparisons)
        return None if needed is None else max(1, needed - self.effect.n)


def compare(
    ours: Sequence[float], theirs: Sequence[float], scale: Scale, noise: float = 0.0
) -> Effect:
    """Compare values seed by seed; the two are in the same order of seeds.

    Args:
        ours: Where our runs ended: infinite for those that diverged, minus infinity for points.
        theirs: Where the others ended.
        scale: How differences are measured.
        noise: The standard error of the difference that all seeds share, see `sampling_noise`.
    """
    far = scale.furthest
    whole = [scale.difference(*pair) for pair in zip(ours, theirs, strict=True)]
    differences = [min(max(one, -far), far) for one in whole]
    n = len(differences)

    def interval(level: float) -> Interval:
        return Interval(*sign_flips.interval(differences, level, noise), level)

    return Effect(
        scale=scale,
        n=n,
        estimate=fmean(differences) if n else math.nan,
        sd=stdev(differences) if n > 1 else math.nan,
        interval=interval(1 - ALPHA),
        narrow=interval(1 - 2 * ALPHA),
        p=sign_flips.p_value(differences, noise),
        noise=noise,
        clipped=sum(abs(one) > far for one in whole),
    )


def judge(effects: Mapping[str, Effect]) -> dict[str, Judgement]:
    """Return the verdict on each of the contenders of a task, corrected for all of them."""
    found: dict[str, Judgement] = {}
    adjusted = holm([effect.p for effect in effects.values()])
    for (name, effect), p in zip(effects.items(), adjusted, strict=True):
        few = effect.n < FEWEST_PAIRS
        word = _decide(effect, effect.p, LEANING) if few else _decide(effect, p, ALPHA)
        if few or not word:
            reason = FEW if few else CHANCE
            found[name] = Judgement(effect, p, "undecided", reason, len(effects), word)
        else:
            found[name] = Judgement(effect, p, word, comparisons=len(effects))
    return found


def holm(ps: Sequence[float]) -> list[float]:
    """Return p-values corrected for each other's company, in the order given (Holm, 1979)."""
    corrected, highest = [0.0] * len(ps), 0.0
    for place, at in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        highest = max(highest, min(1.0, (len(ps) - place) * ps[at]))
        corrected[at] = highest
    return corrected


def sampling_noise(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> float:
    """Return the standard error of the difference that the choice of the test set adds.

    Both hold, for each run, the metric over the same equal parts of the test set. How the
    difference varies over them tells how much another test set might have changed it.
    """
    if not ours or not theirs or len(ours[0]) < 2:
        return 0.0
    means = [[fmean(part) for part in zip(*runs, strict=True)] for runs in (ours, theirs)]
    differences = [a - b for a, b in zip(*means, strict=True)]
    return stdev(differences) / math.sqrt(len(differences))


def detectable(sd: float, n: int, *, comparisons: int = 1, noise: float = 0.0) -> float:
    """Return the smallest true difference that is found with a probability of 80%.

    It is infinite if so few pairs find nothing.

    Args:
        sd: The standard deviation of the differences between pairs.
        n: How many pairs there are.
        comparisons: How many are judged: the first that Holm finds must reach 0.05 / so many.
        noise: The standard error that all the pairs share.
    """
    alpha = ALPHA / comparisons
    normal = NormalDist()
    shared = (normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(POWER)) * noise
    return math.hypot(_detectable(n, alpha) * sd, shared) if n else math.inf


@lru_cache(maxsize=64)
def _detectable(n: int, alpha: float) -> float:
    """Return what `detectable` is for differences of standard deviation 1, by synthetic studies.

    A study finds an effect if its interval without the effect ends less than that below 0.
    """
    at = sign_flips.rejected(sign_flips.split_count(n), 1 - alpha)
    if at == 0:
        return math.inf
    rng = np.random.default_rng(0)
    ends = [
        sign_flips.lower_ends(rng.standard_normal((STUDIES // 40, n)))[:, at] for _ in range(40)
    ]
    return float(np.quantile(-np.concatenate(ends), POWER))


def seeds_needed(effect: Effect, comparisons: int = 1) -> int | None:
    """Return with how many seeds an effect as large and as spread would be decided 4 times in 5.

    It is decided as soon as it is found, after Holm, or shown to be too small to matter; None where
    nothing tells the spread, or no number of seeds would do. By the power of a t-test, which that
    of sign flips is close to (Guenther, 1981).
    """
    if effect.n < 2:
        return None
    size, margin = abs(effect.estimate), effect.scale.margin
    normal = NormalDist()
    found = normal.inv_cdf(1 - ALPHA / comparisons / 2), normal.inv_cdf(POWER)
    equal = normal.inv_cdf(1 - ALPHA), normal.inv_cdf((1 + POWER) / 2)
    ways = [_seeds(size, effect, *found), _seeds(margin - size, effect, *equal)]
    # However clear, so few sign patterns may not reach the level.
    least = max(FEWEST_PAIRS, 1 + math.ceil(math.log2(comparisons / ALPHA)))
    return max(least, min(finite)) if (finite := [way for way in ways if way]) else None


def _seeds(size: float, effect: Effect, quantile: float, power: float) -> int | None:
    """Return how many seeds tell a difference from 0; None if the test set's noise hides it."""
    left = size**2 - ((quantile + power) * effect.noise) ** 2
    if size <= 0 or left <= 0:
        return None
    return math.ceil(((quantile + power) * effect.sd) ** 2 / left + quantile**2 / 2)


def _decide(effect: Effect, p: float, level: float) -> Decided | None:
    margin = effect.scale.margin
    if -margin < effect.narrow.low and effect.narrow.high < margin:
        return "equal"
    if p <= level:
        return "ahead" if effect.estimate > 0 else "behind"
    return None
