"""Numbers as readers see them: one rounding, and nothing small that looks like nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvadam_bench.analysis.statistics import Interval, Metric
from hvadam_bench.pages import formatting
from hvadam_bench.pages.formatting import Units, fixed, signed

LOSS = Metric("loss", "min")
FACTOR, PERCENT = 0.223, 0.005  # margins that are told as the one and in the other


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("measure", ("valid_loss", ()), "valid loss"),
        ("measure", ("frechet", ()), "Fréchet distance (not FID)"),
        ("measure", ("frechet", {"fid"}), "FID"),
        ("ranged", (1.5, 1.0, 2.0, "{:.1f}".format), "1.5 [1.0, 2.0]"),
        ("quartiles", (1.5, 1.0, 2.0, "{:.1f}".format), "1.5 (1.0 to 2.0)"),
        ("relative", (math.log(2), 0.0, math.log(4), FACTOR), "×0.50 [0.25, 1.0]"),
        ("relative", (math.log(2), 0.0, math.log(4), PERCENT), "−50% [−75, 0]"),
        ("relative", (0.01, -math.inf, math.inf, PERCENT), "−1.00%"),
        ("smallest", (math.log(1.25),), "a factor of 1.25"),
        ("smallest", (math.log(1.005),), "0.5%"),
        *(("times", (x,), text) for x, text in ((0.5, "0.50"), (0.034, "0.034"), (12.3, "12"))),
        *(("times", (x,), text) for x, text in ((0.03, "0.030"), (1.25, "1.2"), (1e-5, "1e-5"))),
        *(("times", (x,), text) for x, text in ((100.0, "100"), (math.inf, "∞"))),
        *(("signed", (x, 2), text) for x, text in ((0.444, "+0.44"), (-0.5, "−0.50"))),
        *(("signed", (x, 2), text) for x, text in ((0.001, "0.00"), (math.inf, "+∞"))),
        *(("share", (x,), text) for x, text in ((0.25, "25%"), (0.001, "<1%"))),
        *(("share", (x,), text) for x, text in ((0.999, ">99%"), (1.0, "100%"))),
        *(("number", (x,), text) for x, text in ((1234567.0, "1.23e6"), (-0.5, "-0.5"))),
        *(("number", (x,), text) for x, text in ((0.0, "0"), (None, "–"), (20772.0, "20,800"))),
        ("number", (412.0, 2), "410"),
        *(("three_digits", (x,), text) for x, text in ((0.5, "0.50"), (12.34, "12.3"))),
        ("three_digits", (1234.0,), "1234"),
        *(("amount", (x,), text) for x, text in ((4e6, "4M"), (10000, "10,000"))),
        *(("rate", (x,), text) for x, text in ((0.001, "1e-3"), (0.03, "3e-2"), (0.3, "0.3"))),
        *(("rate", (x,), text) for x, text in ((1.25e-4, "1.25e-4"), (500.0, "5e2"))),
        *(("seconds", (x,), text) for x, text in ((0.00123, "1.23 ms"), (4.56, "4.56 s"))),
        *(("seconds", (x,), text) for x, text in ((75.0, "75.0 s"), (8000.0, "133 min"))),
        *(("duration", (x,), text) for x, text in ((40, "40 s"), (600, "10 min"))),
        *(("duration", (x,), text) for x, text in ((7200, "2 h"), (9e5, "10 days"))),
        *(("listed", (x,), text) for x, text in (("abc", "a, b and c"), ("a", "a"))),
        ("listed", ([],), "nothing"),
        ("counted", (1, "task"), "1 task"),
        ("counted", (2396, "run"), "2,396 runs"),
        ("counted", (2, "study", "studies"), "2 studies"),
        *(("spanned", (x,), text) for x, text in (([970, 1320, 990], "970 to 1,320"), ([5], "5"))),
    ],
)
def test_numbers_and_words(name: str, arguments: tuple[Any, ...], text: str) -> None:
    assert getattr(formatting, name)(*arguments) == text


def test_accuracies_are_percentages_in_as_many_digits_as_they_spread() -> None:
    units = Units(Metric("accuracy", "max"), [[0.91, 0.93], [0.914]])
    assert (units.value(0.914), units.change(-0.005), units.name) == ("91.4", "−0.5", "accuracy, %")
    points = Units(Metric("accuracy", "max"), [[91.0, 93.0]])
    assert points.difference(97.0 - 98.05, Interval(-2.0, 0.0, 0.99)) == "−1.1 [−2.0, 0.0]"
    settled = points.difference(1e-3, Interval(5e-4, 2e-3, 0.99), settled=True)
    assert settled == "+0.001 [+0.0005, +0.002]"
    perplexities = Units(Metric("perplexity", "min"), [[51.1, 50.1, 51.4]])
    assert perplexities.spread(51.1, Interval(50.1, 51.4, 0.95)) == "51.1 [50.1, 51.4]"


@pytest.mark.parametrize("way", [-1.05, 97.0 - 98.05, 100 * -0.0105, -(0.35 * 3), 1.0 - 2.05])
def test_a_half_is_rounded_as_the_decimal_that_it_is(way: float) -> None:
    """However it was computed: as binary numbers some of these are above -1.05, some below."""
    assert fixed(way, 1) == signed(way, 1) == "−1.1"


@pytest.mark.parametrize(
    ("x", "decimals", "text"),
    [(2.675, 2, "2.68"), (0.5, 0, "1"), (-0.04, 1, "0.0"), (1e22, 1, "1" + 22 * "0" + ".0")],
)
def test_fixed(x: float, decimals: int, text: str) -> None:
    assert fixed(x, decimals) == text


@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_fixed_is_near_and_mirrored(x: float, decimals: int) -> None:
    text = fixed(x, decimals)
    assert abs(float(text.replace("−", "-")) - x) <= 0.5 * 10**-decimals + 1e-11 * abs(x)
    assert text.replace("−", "") == fixed(-x, decimals).replace("−", "")


@pytest.mark.parametrize(
    ("groups", "value", "text"),
    [
        ([[3.2e-8, 3.6e-8]], 3.2e-8, "3.2e-8"),
        ([[3.21e-8, 3.35e-8], [9e-8, 9.4e-8]], 3.21e-8, "3.21e-8"),
        ([[3.211e-8, 3.225e-8]], 3.211e-8, "3.211e-8"),
        ([[0.5, 0.6]], 3.2e-8, "3.2e-8"),  # beside larger ones
        ([[0.5, 0.6]], -3.2e-8, "−3.2e-8"),
        ([[3.2e-8, 3.6e-8]], 0.0, "0"),
        ([[0.5, 0.6]], 0.0, "0.00"),
        ([[0.5, 0.6]], math.inf, "diverged"),
    ],
)
def test_a_tiny_loss_never_looks_like_none(
    groups: list[list[float]], value: float, text: str
) -> None:
    assert Units(LOSS, groups).value(value) == text


def test_differences_of_tiny_losses_show_too() -> None:
    units = Units(LOSS, [[3.2e-8, 3.6e-8]])
    assert units.difference(-4e-9, Interval(-6e-9, 0.0, 0.95)) == "−4e-9 [−6e-9, 0]"
