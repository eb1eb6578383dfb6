from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvadam_bench.analysis import effects
from hvadam_bench.analysis.effects import Effect, Scale
from hvadam_bench.analysis.statistics import Interval, Metric

SMOOTH = Scale("factor", 1.25)
POINTS = Scale("points", 0.3)
losses = st.floats(1e-6, 1e6)
pairs = st.lists(st.tuples(losses, losses), min_size=1, max_size=8)


def split(found: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [a for a, _ in found], [b for _, b in found]


def test_a_factor_is_told_as_one() -> None:
    ours = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    found = effects.compare(ours, [1.5 * value for value in ours], SMOOTH)
    assert found.n == 6
    assert SMOOTH.told(found.estimate) == pytest.approx(1.5)
    assert [SMOOTH.told(end) for end in found.interval[:2]] == pytest.approx([1.5, 1.5])
    assert found.sd == pytest.approx(0, abs=1e-12)
    assert (found.p, found.clipped) == (2 / 2**6, 0)


def test_points_are_differences_of_which_more_is_better() -> None:
    found = effects.compare([91.0, 92.0, 93.0], [90.0, 90.0, 90.0], POINTS)
    assert found.estimate == pytest.approx(2)
    assert found.sd == pytest.approx(1)
    assert POINTS.told(found.estimate) == found.estimate


@given(pairs)
def test_comparisons_mirror_each_other(found: list[tuple[float, float]]) -> None:
    ours, theirs = split(found)
    there, back = effects.compare(ours, theirs, SMOOTH), effects.compare(theirs, ours, SMOOTH)
    assert (there.estimate, there.p, there.clipped) == (-back.estimate, back.p, back.clipped)
    for one, other in ((there.interval, back.interval), (there.narrow, back.narrow)):
        assert (one.low, one.high) == (-other.high, -other.low)


@given(pairs, st.integers(-20, 20))
def test_factors_know_no_units(found: list[tuple[float, float]], power: int) -> None:
    ours, theirs = split(found)
    unit = 2.0**power
    here = effects.compare(ours, theirs, SMOOTH)
    there = effects.compare([unit * v for v in ours], [unit * v for v in theirs], SMOOTH)
    assert there.estimate == pytest.approx(here.estimate, abs=1e-9)
    assert there.interval[:2] == pytest.approx(here.interval[:2], abs=1e-9)


@given(pairs, st.integers(0, 7), st.floats(1.0, 50.0))
def test_a_better_run_never_looks_worse(
    found: list[tuple[float, float]], at: int, factor: float
) -> None:
    ours, theirs = split(found)
    better = list(ours)
    better[at % len(ours)] /= factor
    before, after = effects.compare(ours, theirs, SMOOTH), effects.compare(better, theirs, SMOOTH)
    assert after.estimate >= before.estimate - 1e-12
    for one, other in ((before.interval, after.interval), (before.narrow, after.narrow)):
        assert other.low >= one.low - 1e-12
        assert other.high >= one.high - 1e-12


@given(pairs)
def test_intervals_nest_around_the_estimate(found: list[tuple[float, float]]) -> None:
    effect = effects.compare(*split(found), SMOOTH)
    ends = [effect.interval.low, effect.narrow.low, effect.estimate]
    ends += [effect.narrow.high, effect.interval.high]
    assert all(b >= a - 1e-9 for a, b in pairwise(ends))


def test_runs_without_an_end_are_far_but_not_beyond_all_bounds() -> None:
    ours = [math.inf, math.inf, 0.0, 1.0, 1.0]
    theirs = [math.inf, 1.0, 1.0, math.inf, 1e9]
    found = effects.compare(ours, theirs, SMOOTH)
    far = math.log(100)
    assert found.estimate == pytest.approx((0 - far + far + far + far) / 5)
    assert found.clipped == 4
    lost = effects.compare([-math.inf, 91.0], [90.0, 90.0], POINTS)
    assert lost.estimate == pytest.approx((-100 + 1) / 2)


def test_one_divergence_in_ten_does_not_settle_a_lead() -> None:
    theirs = [1.0] * 10
    ahead = effects.judge({"ours": effects.compare([0.5] * 10, theirs, SMOOTH)})["ours"]
    assert ahead.verdict == "ahead"
    lost = effects.judge({"ours": effects.compare([math.inf, *[0.5] * 9], theirs, SMOOTH)})["ours"]
    assert (lost.verdict, lost.reason) == ("undecided", "the difference may be chance")


def test_values_that_have_no_difference_are_refused() -> None:
    with pytest.raises(ValueError, match="values must be numbers, got nan and 1"):
        effects.compare([math.nan], [1.0], SMOOTH)
    with pytest.raises(ValueError, match="ratios need values >= 0, got -2"):
        effects.compare([1.0], [-2.0], SMOOTH)
    with pytest.raises(ValueError, match="shorter"):
        effects.compare([1.0, 2.0], [1.0], SMOOTH)


def test_nothing_compared_is_undecided() -> None:
    nothing = effects.compare([], [], SMOOTH)
    assert (nothing.n, nothing.p) == (0, 1)
    assert math.isnan(nothing.estimate)
    assert effects.judge({"ours": nothing})["ours"].verdict == "undecided"
    assert effects.judge({}) == {}


def test_holm_by_hand() -> None:
    # Rising: 0.005 x 5, 0.011 x 4, 0.02 x 3, 0.04 x 2, 0.13 x 1; none below the one before.
    ps = [0.04, 0.005, 0.13, 0.02, 0.011]
    assert effects.holm(ps) == pytest.approx([0.08, 0.025, 0.13, 0.06, 0.044])
    assert effects.holm([0.6, 0.7]) == [1, 1]
    assert effects.holm([0.03, 0.031]) == pytest.approx([0.06, 0.06])
    assert effects.holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_lies_between_nothing_and_bonferroni(ps: list[float]) -> None:
    for p, corrected in zip(ps, effects.holm(ps), strict=True):
        assert p <= corrected <= min(1, len(ps) * p) or corrected == max(effects.holm(ps))
    assert min(effects.holm(ps)) == min(1, len(ps) * min(ps))
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    corrected = effects.holm(ps)
    assert [corrected[i] for i in order] == sorted(corrected)


def effect(low: float, high: float, p: float, n: int = 10) -> Effect:
    """Return an effect with a 90% interval, in shares of the margin."""
    margin = SMOOTH.margin
    narrow = Interval(low * margin, high * margin, 0.9)
    middle = (narrow.low + narrow.high) / 2
    return Effect(SMOOTH, n, middle, 0.1, narrow._replace(level=0.95), narrow, p, 0.0, 0)


@pytest.mark.parametrize(
    ("found", "verdict", "reason"),
    [
        (effect(0.5, 2.0, 0.01), "ahead", ""),
        (effect(-2.0, -0.5, 0.01), "behind", ""),
        (effect(0.5, 0.9, 0.002), "equal", ""),  # no chance, and too little to matter
        (effect(-0.9, 0.9, 0.7), "equal", ""),
        (effect(-0.9, 1.0, 0.7), "undecided", "the difference may be chance"),
        (effect(-0.5, 2.0, 0.06), "undecided", "the difference may be chance"),
        (effect(0.5, 2.0, 0.01, n=9), "undecided", "n < 10"),
        (effect(-0.1, 0.1, 0.9, n=9), "undecided", "n < 10"),
    ],
)
def test_verdicts(found: Effect, verdict: str, reason: str) -> None:
    judged = effects.judge({"ours": found})["ours"]
    assert (judged.verdict, judged.reason) == (verdict, reason)


def test_company_makes_verdicts_harder() -> None:
    one = effect(0.5, 2.0, 0.02)
    nothing = replace(one, p=0.9)
    assert effects.judge({"a": one, "b": nothing})["a"].verdict == "ahead"
    among = effects.judge({"a": one, "b": nothing, "c": nothing})
    assert among["a"].verdict == "undecided"
    assert among["a"].p == pytest.approx(0.06)


def test_sampling_noise_is_that_of_fresh_test_sets() -> None:
    """Networks that mostly fail on the same examples differ by less than their accuracies say."""
    rng = np.random.default_rng(0)
    hard = rng.random((400, 50, 40)) < 0.1  # test sets of 50 parts of 40 examples
    ours, theirs = (~(hard | (rng.random(hard.shape) < p)) for p in (0.01, 0.03))
    parts = [100 * own.mean(2) for own in (ours, theirs)]
    differences = parts[0].mean(1) - parts[1].mean(1)
    said = [effects.sampling_noise([a], [b]) for a, b in zip(*parts, strict=True)]
    assert np.mean(said) == pytest.approx(np.std(differences), rel=0.1)
    independent = 100 * math.sqrt(2 * 0.1 * 0.9 / 2000)
    assert np.mean(said) < 0.6 * independent
    assert effects.sampling_noise([], [parts[1][0]]) == 0.0  # nobody ended


def test_what_a_test_set_cannot_tell_apart_is_undecided() -> None:
    ours, theirs = [91.5] * 10, [91.0] * 10
    noise = 0.4
    blind, told = (effects.compare(ours, theirs, POINTS, one) for one in (0.0, noise))
    assert effects.judge({"ours": blind})["ours"].verdict == "ahead"
    assert effects.judge({"ours": told})["ours"].verdict == "undecided"
    assert told.noise == noise
    assert told.narrow.high - told.estimate == pytest.approx(1.645 * noise, rel=1e-3)


@pytest.mark.parametrize("comparisons", [1, 4])
def test_what_is_detectable_is_found_four_times_in_five(comparisons: int) -> None:
    studies, n, sd = 400, 10, 0.3
    size = effects.detectable(sd, n, comparisons=comparisons)
    rng = np.random.default_rng(11)
    draws = np.exp(rng.normal(0, sd, (studies, n)) - size)
    ps = [effects.compare(list(ours), [1.0] * n, SMOOTH).p for ours in draws]
    found = np.mean(np.array(ps) <= 0.05 / comparisons)
    assert found == pytest.approx(0.8, abs=3 * math.sqrt(0.16 / studies))


def test_detectable_effects_shrink_with_pairs_to_what_theory_says() -> None:
    sizes = [effects.detectable(1.0, n) for n in (6, 8, 10, 12)]
    assert sizes == sorted(sizes, reverse=True)
    normal = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
    assert normal / math.sqrt(12) < sizes[-1] < 1.15 * normal / math.sqrt(12)
    assert effects.detectable(1.0, 5) == effects.detectable(1.0, 0) == math.inf
    assert effects.detectable(2.0, 10) == pytest.approx(2 * effects.detectable(1.0, 10))
    assert effects.detectable(0.0, 10, noise=0.4) == pytest.approx(normal * 0.4)


@pytest.mark.parametrize("comparisons", [1, 4, 10])
def test_as_many_seeds_are_asked_for_as_find_the_effect(comparisons: int) -> None:
    for n in (10, 11, 12):
        size = effects.detectable(1.0, n, comparisons=comparisons)
        seen = replace(effect(-9, 9, 0.5, n=5), estimate=size, sd=1.0)
        needed = effects.seeds_needed(replace(seen, scale=Scale("factor", 1.0001)), comparisons)
        assert needed == pytest.approx(n, abs=1)


def test_more_seeds_are_asked_for_only_where_they_help() -> None:
    def more(sd: float, estimate: float = 0.1, n: int = 5, noise: float = 0.0) -> int | None:
        one = replace(effect(-9, 9, 0.5, n=n), estimate=estimate, sd=sd, noise=noise)
        return effects.judge({"ours": one})["ours"].more_seeds

    assert more(sd=0.01) == 5  # a verdict needs ten
    assert more(sd=0.4, n=10) > more(sd=0.2, n=10) >= 1  # type: ignore[operator]
    assert more(sd=0.2, estimate=0.0) < 12  # type: ignore[operator]  # soon shown to be equal
    assert more(sd=0.2, estimate=SMOOTH.margin, noise=1.0) is None  # the test set is too small
    assert more(sd=math.nan, n=1) is None
    decided = effects.judge({"ours": effect(0.5, 2.0, 0.01)})["ours"]
    assert (decided.word, decided.more_seeds) == ("ahead", None)


@pytest.mark.parametrize(
    ("ours", "word"),
    [
        ([0.5] * 9, "leans ahead"),
        ([0.5] * 3, "leans ahead"),
        ([2.0] * 5, "leans behind"),
        ([1.01] * 5, "leans equal"),
        ([0.5] * 2, "undecided"),
        ([0.1, 0.2, 3.0, 4.0, 5.0], "undecided"),
        ([], "undecided"),
    ],
)
def test_few_pairs_lean_at_most(ours: list[float], word: str) -> None:
    found = effects.judge({"ours": effects.compare(ours, [1.0] * len(ours), SMOOTH)})["ours"]
    assert (found.word, found.verdict) == (word, "undecided")


@pytest.mark.parametrize(
    ("metric", "values", "scale"),
    [
        (Metric("loss", "min"), [0.1, math.inf], Scale("factor", 1.005)),
        (Metric("accuracy", "max"), [91.0, -math.inf], Scale("points", 0.3)),
        (Metric("accuracy", "max"), [0.91, 0.0], Scale("points", 0.3, 0.01)),
        (Metric("reward", "max"), [-400.0, 5000.0], Scale("points", 0.3, 50.0)),
        (Metric("nats", "min"), [-0.5, 0.5], Scale("points", 0.3, 0.01, "min")),
        (Metric("loss", "min"), [], Scale("factor", 1.005)),
    ],
)
def test_every_measure_has_a_scale(metric: Metric, values: list[float], scale: Scale) -> None:
    assert effects.scale_for(metric, values) == scale


def test_measures_below_zero_are_better_where_they_are_less() -> None:
    found = effects.compare([-3.0] * 10, [-2.0] * 10, Scale("points", 0.3, goal="min"))
    assert found.estimate == 1
    assert effects.judge({"ours": found})["ours"].verdict == "ahead"
