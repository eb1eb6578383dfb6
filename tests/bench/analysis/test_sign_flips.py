from __future__ import annotations

import itertools
import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvadam_bench.analysis import sign_flips

# Of few digits, so that ties are common and fractions stay small.
tied = st.lists(st.integers(-6, 6), min_size=1, max_size=8)
spread = st.lists(st.floats(-100, 100), min_size=6, max_size=9)


def brute_force(differences: list[int], centre: Fraction) -> Fraction:
    """Return the share of all patterns of signs whose sum is as far from 0, without rounding."""
    moved = [one - centre for one in differences]
    patterns = list(itertools.product((1, -1), repeat=len(moved)))
    sums = [sum(sign * one for sign, one in zip(signs, moved, strict=True)) for signs in patterns]
    return Fraction(sum(abs(one) >= abs(sum(moved)) for one in sums), len(patterns))


@given(tied)
def test_p_is_that_of_all_patterns(differences: list[int]) -> None:
    assert sign_flips.p_value(differences) == brute_force(differences, Fraction(0))


@given(tied, st.sampled_from([0.5, 0.8, 0.9, 0.95]))
def test_the_interval_ends_where_the_test_begins_to_reject(
    differences: list[int], level: float
) -> None:
    low, high = sign_flips.interval(differences, level)
    mean = Fraction(sum(differences), len(differences))
    for end, side in ((low, -1), (high, 1)):
        if math.isinf(end):
            far = mean + side * 10**6
            assert brute_force(differences, far) > 1 - level
            continue
        # All ends are fractions of small denominators: within rounding there is one of them.
        exact = Fraction(end).limit_denominator(100)
        assert float(exact) == pytest.approx(end, abs=1e-9)
        assert brute_force(differences, exact) > 1 - level
        assert brute_force(differences, exact + side * Fraction(1, 10**6)) <= 1 - level


@given(spread, st.floats(0, 50), st.sampled_from([0.8, 0.9, 0.95]))
def test_p_and_interval_agree_with_and_without_noise(
    differences: list[float], noise: float, level: float
) -> None:
    low, high = sign_flips.interval(differences, level, noise)
    nearest = min(abs(low), abs(high))
    if nearest > 1e-6 * max(map(abs, differences)):
        # The end of the interval lies on a step of p, the noise of which is taken at the step.
        p = sign_flips.p_value(differences, noise)
        step = 1 / sign_flips.split_count(len(differences))
        assert p > 1 - level - step if low <= 0 <= high else p <= 1 - level + step


@given(spread, st.floats(0, 50), st.floats(0, 50))
def test_noise_widens(differences: list[float], less: float, more: float) -> None:
    less, more = sorted((less, more))
    narrow, wide = (sign_flips.interval(differences, 0.9, noise) for noise in (less, more))
    assert wide[0] <= narrow[0] <= narrow[1] <= wide[1]
    assert sign_flips.p_value(differences, less) <= sign_flips.p_value(differences, more)


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("draw", ["standard_normal", "standard_cauchy", "laplace"])
def test_the_interval_covers_as_often_as_it_says(draw: str, level: float) -> None:
    # For values that are symmetric and never tied the test rejects in exactly so many cases.
    studies, n = 2000, 10
    rng = np.random.default_rng(7)
    values = getattr(rng, draw)(size=(studies, n))
    count = sign_flips.split_count(n)
    at = sign_flips.rejected(count, level)
    below = sign_flips.lower_ends(values)[:, at] <= 0
    above = -sign_flips.lower_ends(-values)[:, at] >= 0
    exact = 1 - at / count
    assert abs(exact - level) < 1 / count
    error = math.sqrt(exact * (1 - exact) / studies)
    assert np.mean(below & above) == pytest.approx(exact, abs=3 * error)


def test_noise_that_all_pairs_share_is_covered_too() -> None:
    rng = np.random.default_rng(3)
    studies = 1000
    shared = rng.normal(size=(studies, 1))
    values = rng.normal(size=(studies, 10)) + shared
    held = [low <= 0 <= high for low, high in (sign_flips.interval(v, 0.9, 1.0) for v in values)]
    assert np.mean(held) == pytest.approx(0.9, abs=3 * math.sqrt(0.09 / studies))
    blind = [low <= 0 <= high for low, high in (sign_flips.interval(v, 0.9) for v in values)]
    assert np.mean(blind) < 0.5


@pytest.mark.parametrize("sigmas", [0.5, 1.0, 2.0, 2.5])
def test_noise_alone_gives_the_p_of_a_normal_error(sigmas: float) -> None:
    count = sign_flips.split_count(10)
    normal = 2 * (1 - NormalDist().cdf(sigmas))  # rounded up to a step of the test
    assert sign_flips.p_value([sigmas] * 10, noise=1.0) == math.ceil(normal * count) / count


def test_many_pairs_are_drawn_always_the_same() -> None:
    rng = np.random.default_rng(0)
    for n in (14, 15, 30):  # exact, and drawn
        values = rng.normal(0.5, 1, n)
        assert sign_flips.interval(values, 0.95) == sign_flips.interval(values, 0.95)
        normal = 1.96 * values.std(ddof=1) / math.sqrt(n)
        low, high = sign_flips.interval(values, 0.95)
        assert (high - low) / 2 == pytest.approx(normal, rel=0.2)
    assert sign_flips.p_value([1.0] * 30) == 1 / sign_flips.split_count(30)


def test_no_difference_is_no_evidence() -> None:
    assert sign_flips.p_value([]) == sign_flips.p_value([0.0] * 12) == 1
    assert sign_flips.p_value([1.0, -1.0, 2.0, -2.0]) == 1
    assert sign_flips.interval([], 0.9) == (-math.inf, math.inf)
