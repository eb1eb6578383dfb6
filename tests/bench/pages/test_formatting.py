"""Numbers as readers see them: one rounding, and nothing small that looks like nothing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvadam_bench.analysis.statistics import Interval, Metric
from hvadam_bench.pages.formatting import Units, fixed, signed

LOSS = Metric("loss", "min")


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
