"""How far one contender is ahead of another over the same seeds, and whether that is a finding.

Differences are taken seed by seed, positive where ours is better: the logarithm of the ratio of
two losses, or points of accuracy. A verdict weighs them against chance and against the smallest
effect that matters:

- *equal*: the 90% interval lies inside the smallest effect on both sides (two one-sided tests at
  5%). A difference that is no chance, but surely too small to matter, is equal.
- *ahead*, *behind*: not equal, and the sign-flip test's p, after Holm's correction over all the
  contenders of the task, is at most 0.05.
- *undecided*: neither, or fewer than ten pairs.

Runs without an end (infinite losses) have no ratio. A difference counts as a factor of 100 or as
100 points at most, either way, and two runs that both have no end count as no difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, fmean, stdev
from typing import Literal, NamedTuple

import numpy as np

from hvadam_bench.analysis import sign_flips
from hvadam_bench.analysis.statistics import Interval, Metric

Suite = Literal["smooth", "minibatch"]
Verdict = Literal["ahead", "behind", "equal", "undecided"]

# The level of the test, and with it of the intervals: 95% to tell, 90% to call equal.
ALPHA = 0.05
# Fewer pairs than this decide nothing: five that agree are chance once in sixteen times.
FEWEST_PAIRS = 10
# The furthest that one seed's difference counts: a factor of 100, or 100 points.
FURTHEST = 100.0
# What "detected" means for a task's power, and by how many made-up studies it is found.
POWER, STUDIES = 0.8, 4000


@dataclass(frozen=True)
class Scale:
    """What a difference is measured in, and how much of it matters.

    Attributes:
        kind: "factor" of measures of which less is better, whose differences are logarithms of
            ratios; or "points" of measures of which more is better.
        smallest: The smallest effect that matters: a factor above 1, or points.
    """

    kind: Literal["factor", "points"]
    smallest: float

    @property
    def margin(self) -> float:
        """Return the smallest effect that matters, as a difference."""
        return math.log(self.smallest) if self.kind == "factor" else self.smallest

    @property
    def furthest(self) -> float:
        """Return the largest difference that one seed counts."""
        return math.log(FURTHEST) if self.kind == "factor" else FURTHEST

    def difference(self, ours: float, theirs: float) -> float:
        """Return how much better ours is, without bounds: infinite beside a run without an end.

        Example:
            >>> Scale("points", 0.3).difference(91.5, 91.0)
            0.5
            >>> Scale("factor", 1.25).difference(math.inf, 1.0)
            -inf
        """
        if math.isnan(ours) or math.isnan(theirs):
            raise ValueError(f"Scale: values must be numbers, got {ours} and {theirs}.")
        if ours == theirs:
            return 0.0
        if self.kind == "points":
            return ours - theirs
        if min(ours, theirs) < 0:
            raise ValueError(f"Scale: ratios need values >= 0, got {min(ours, theirs):g}.")
        return _log(theirs) - _log(ours)

    def told(self, difference: float) -> float:
        """Return a difference as people read it: a factor (1 for none), or points.

        Example:
            >>> Scale("factor", 1.25).told(math.log(2))
            2.0
        """
        return math.exp(difference) if self.kind == "factor" else difference


# By suite and by what is better: a factor for losses and perplexities, points for accuracies.
SMALLEST: Mapping[tuple[Suite, Literal["min", "max"]], Scale] = {
    ("smooth", "min"): Scale("factor", 1.25),
    ("minibatch", "min"): Scale("factor", 1.005),
    ("minibatch", "max"): Scale("points", 0.3),
}


def scale_of(metric: Metric, suite: Suite) -> Scale:
    """Return how differences in a measure are told in a suite of tasks.

    Raises:
        ValueError: the suite has no smallest effect for such a measure.
    """
    found = SMALLEST.get((suite, metric.goal))
    if found is None:
        raise ValueError(
            f"scale_of: {suite} tasks are judged by measures of which less is better, "
            f"got {metric.name!r}; judge by a loss."
        )
    return found


@dataclass(frozen=True)
class Effect:
    """How far ours is ahead of theirs, over the same seeds.

    All but `n`, `p` and `clipped` are differences: `scale.told` makes factors of them.

    Attributes:
        scale: What it is measured in.
        n: Pairs.
        estimate: The mean difference; positive is better.
        sd: The standard deviation of the differences; NaN of fewer than two.
        interval: The 95% interval of the mean.
        narrow: The 90% interval, which must lie inside the smallest effect to be called equal.
        p: Two-sided, before any correction.
        noise: The test set's standard error that the intervals and p hold.
        clipped: How many of the differences were beyond the furthest that counts.
    """

    scale: Scale
    n: int
    estimate: float
    sd: float
    interval: Interval
    narrow: Interval
    p: float
    noise: float
    clipped: int


class Judgement(NamedTuple):
    """An effect, and what it amounts to among the contenders of a task.

    Attributes:
        effect: What was found.
        p: After Holm's correction.
        verdict: How ours stands.
        reason: Why it is undecided; else empty.
    """

    effect: Effect
    p: float
    verdict: Verdict
    reason: str = ""


def compare(
    ours: Sequence[float], theirs: Sequence[float], scale: Scale, noise: float = 0.0
) -> Effect:
    """Compare values seed by seed; the two are in the same order of seeds.

    Args:
        ours: Where our runs ended; infinite for those that did not (minus infinity for points).
        theirs: The same of the others.
        scale: How differences are measured.
        noise: The standard error of the difference that all seeds share, see `sampling_noise`.

    Example:
        >>> losses = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
        >>> found = compare(losses, [2 * x for x in losses], Scale("factor", 1.25))
        >>> round(found.scale.told(found.estimate), 6), found.p
        (2.0, 0.03125)
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
    adjusted = holm([effect.p for effect in effects.values()])
    return {
        name: Judgement(effect, p, *_verdict(effect, p))
        for (name, effect), p in zip(effects.items(), adjusted, strict=True)
    }


def holm(ps: Sequence[float]) -> list[float]:
    """Return p-values corrected for each other's company, in the order given (Holm, 1979).

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    corrected, highest = [0.0] * len(ps), 0.0
    for place, at in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        highest = max(highest, min(1.0, (len(ps) - place) * ps[at]))
        corrected[at] = highest
    return corrected


def sampling_noise(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> float:
    """Return the standard error of the difference that the choice of the test set adds.

    Other examples would have given another difference, and more seeds do not help against that. How
    the difference varies from part to part of the test set tells how much.

    Args:
        ours: Of each run, the metric over equal parts of the test set.
        theirs: The same of the others, over the same parts.

    Example:
        >>> round(sampling_noise([[90.0, 92.0], [92.0, 94.0]], [[90.0, 90.0]]), 6)
        1.0
    """
    if not ours or not theirs or len(ours[0]) < 2:
        return 0.0
    means = [[fmean(part) for part in zip(*runs, strict=True)] for runs in (ours, theirs)]
    differences = [a - b for a, b in zip(*means, strict=True)]
    return stdev(differences) / math.sqrt(len(differences))


def detectable(sd: float, n: int, *, comparisons: int = 1, noise: float = 0.0) -> float:
    """Return the smallest true difference that is found with a probability of 80%.

    Args:
        sd: The standard deviation of the differences between pairs.
        n: Pairs.
        comparisons: Contenders of the task: the first that Holm finds must reach 0.05 / so many.
        noise: The standard error that all the pairs share.

    Returns:
        A difference, as `Effect.estimate` is one; infinite if so few pairs find nothing.
    """
    alpha = ALPHA / comparisons
    normal = NormalDist()
    shared = (normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(POWER)) * noise
    return math.hypot(_detectable(n, alpha) * sd, shared) if n else math.inf


@lru_cache(maxsize=64)
def _detectable(n: int, alpha: float) -> float:
    """Return what `detectable` is for differences of standard deviation 1, by made-up studies.

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


def _verdict(effect: Effect, p: float) -> tuple[Verdict, str]:
    margin = effect.scale.margin
    if effect.n < FEWEST_PAIRS:
        return "undecided", f"n < {FEWEST_PAIRS}"
    if -margin < effect.narrow.low and effect.narrow.high < margin:
        return "equal", ""
    if p <= ALPHA:
        return ("ahead" if effect.estimate > 0 else "behind"), ""
    return "undecided", "the difference may be chance"


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
