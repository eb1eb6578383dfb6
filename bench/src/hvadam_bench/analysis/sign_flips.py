"""The sign-flip test of paired differences, and the interval that inverts it.

If swapping the two of a pair changes nothing but a name, each difference is as likely to have the
other sign, and the mean seen is one of 2**n equally likely ones. The test counts those at least as
far from 0. It is exact for differences that spread evenly around their centre, however long their
tails, and pairs from one distribution always do, however skewed that is.

The interval holds every centre that the test does not reject. It needs no search. Flip the signs
of a part of the differences around a centre c: the mean gets no nearer to c exactly if c lies
between the mean of that part and the mean of the others. All these ranges hold the overall mean,
so the test's p at c is the share of the splits in two parts whose range reaches c, and the ends of
the interval are order statistics of the ranges' ends (Hartigan's typical values, 1969). The p of
the two sides is twice that of one, so that a 90% interval inside bounds is two one-sided tests at
5%.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Up to so many pairs every split is tried; beyond, as many as DRAWN by chance, always the same.
EXACT_PAIRS = 14
DRAWN = 2**13
# What rounding may move a mean by, relative to the largest difference: ties stay ties.
ROUNDING = 1e-12


def p_value(differences: Sequence[float] | Array, noise: float = 0.0) -> float:
    """Return the chance of a mean as far from 0 if signs are drawn: two-sided, exact if few.

    Args:
        differences: The finite differences of pairs.
        noise: A standard error that all the differences share, so that no number of pairs reduces
            it. The p is then that at which `interval` with the same noise just holds 0.
    """
    values = np.asarray(differences, np.float64)
    if values.size == 0 or values.mean() == 0:
        return 1.0
    values = values * np.sign(values.mean())
    mean, count = values.mean(), split_count(values.size)
    reach = mean - lower_ends(values)[1:]
    if noise:
        levels = [NormalDist().inv_cdf(1 - k / (2 * count)) for k in range(1, count)]
        reach = np.hypot(reach, noise * np.array(levels))
    slack = ROUNDING * np.abs(values).max()
    return float(1 + np.count_nonzero(reach >= mean - slack)) / count


def interval(
    differences: Sequence[float] | Array, level: float, noise: float = 0.0
) -> tuple[float, float]:
    """Return the centres that the test does not reject at a level; unbounded for too few pairs.

    Args:
        differences: The finite differences of pairs.
        level: 0.95 for a test at 5%.
        noise: A standard error that all the differences share; it joins each half of the interval
            as independent errors do, by squares.
    """
    values = np.asarray(differences, np.float64)
    if values.size == 0:
        return (-np.inf, np.inf)
    mean, count = values.mean(), split_count(values.size)
    at = rejected(count, level)
    shared = noise * NormalDist().inv_cdf((1 + level) / 2)
    below = np.hypot(mean - lower_ends(values)[at], shared)
    above = np.hypot(-mean - lower_ends(-values)[at], shared)
    return (float(mean - below), float(mean + above))


def lower_ends(differences: Array) -> Array:
    """Return the lower ends of the ranges of all splits in rising order, over the last axis.

    The first is that of the split which leaves one part empty: its range is everything.
    """
    splits = _splits(differences.shape[-1])
    sizes = splits.sum(axis=1)
    part = differences @ splits.T
    rest = differences.sum(axis=-1, keepdims=True) - part
    ends = np.minimum(part / sizes, rest / (differences.shape[-1] - sizes))
    unbounded = np.full((*ends.shape[:-1], 1), -np.inf)
    return np.concatenate([unbounded, np.sort(ends, axis=-1)], axis=-1)


def split_count(pairs: int) -> int:
    """Return how many splits of so many pairs there are, or are drawn."""
    return len(_splits(pairs)) + 1


def rejected(count: int, level: float) -> int:
    """Return how many of the ranges, from the furthest on, the test at a level leaves out."""
    return int((1 - level) * count)


@lru_cache(maxsize=8)
def _splits(pairs: int) -> Array:
    """Return the splits in two parts that are not empty, a row each, with 1 for the first part."""
    if pairs <= EXACT_PAIRS:
        # The last difference is never in the first part, or each split would be there twice.
        numbers = np.arange(1, 2 ** (pairs - 1))[:, None]
        return ((numbers >> np.arange(pairs)) & 1).astype(np.float64)
    drawn = np.random.default_rng(0).integers(0, 2, (DRAWN, pairs))
    return drawn[(drawn.min(axis=1) == 0) & (drawn.max(axis=1) == 1)].astype(np.float64)
