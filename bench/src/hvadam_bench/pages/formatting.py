"""Numbers and words as a reader wants them: as many digits as the spread allows, no more.

Pages and the terminal write numbers with these functions alone, so that none looks two ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from hvadam_bench.analysis import statistics

MINUS, NOTHING = "−", "–"
NOT_FID = "Fréchet distance (not FID)"
# What a float knows of a decimal that was computed: 97 - 98.05 is -1.05 to so many digits.
_KNOWN_DIGITS = 12
# Factors nearer to 1 than this are told as percents.
CLOSE = 0.1
# Smaller numbers are written with an exponent.
_MOST_DECIMALS = 6


def measure(metric: str, measured: Container[str]) -> str:
    """Return what a metric is called, given all that was measured with it.

    A Fréchet distance is FID with the features of Inception only, where "fid" is measured too.
    """
    if metric == "frechet":
        return "FID" if "fid" in measured else NOT_FID
    return metric.replace("_", " ")


class Units:
    """The way to write values of one metric on one task, given those of each contender.

    The spread over seeds decides how many decimals they have. Accuracies are percentages; those
    that are given as shares are made so.
    """

    def __init__(
        self,
        metric: statistics.Metric,
        groups: Iterable[Iterable[float]],
        measured: Container[str] = (),
    ) -> None:
        finite = [[value for value in group if math.isfinite(value)] for group in groups]
        percent = metric.name.endswith("accuracy")
        shares = percent and all(0 <= v <= 1 for g in finite for v in g)
        self.factor = 100 if shares else 1
        self.measure = name = measure(metric.name, measured)
        self.name = f"{name}, %" if percent else name
        counted = f" in {name}" if " " in name else f" {name}"
        self.unit = " points" if percent else counted
        written = [[value * self.factor for value in group] for group in finite]
        largest = max((abs(value) for group in written for value in group), default=0.0)
        # So many decimals that the typical contender's spread over seeds has two digits.
        spreads = sorted(max(group) - min(group) for group in written if len(set(group)) > 1)
        spread = max(spreads[len(spreads) // 2] if spreads else 0.01 * largest, 1e-5 * largest)
        decimals = 3 if spread <= 0 else max(0, 1 - math.floor(math.log10(spread)))
        self.decimals = min(_MOST_DECIMALS, decimals)
        # Where all are tiny, decimals would be zeros: significant digits instead, at least two.
        tiny = decimals > _MOST_DECIMALS and 0 < largest < 1e-3
        self._digits = max(2, decimals + math.floor(math.log10(largest)) + 1) if tiny else 0

    def value(self, value: float) -> str:
        """Return a value; a run that diverged has none. One that is not 0 does not look so."""
        if math.isnan(value):
            return NOTHING
        if math.isinf(value):
            return "diverged"
        text = self._write(value)
        return text if value == 0 or _shows(text) else _signed(number(value * self.factor, 2))

    def change(self, value: float) -> str:
        """Return a difference with its sign."""
        if math.isnan(value):
            return NOTHING
        return _infinity(value) if math.isinf(value) else _plus(self._write(value), value)

    def spread(self, middle: float, interval: statistics.Interval | None) -> str:
        """Return a value with its interval, if it has one."""
        if interval is None:
            return self.value(middle)
        return ranged(middle, interval.low, interval.high, self.value)

    def difference(
        self, middle: float, interval: statistics.Interval, *, settled: bool = False
    ) -> str:
        """Return a difference with its interval; a settled one shows however small it is."""
        write = self.change
        if settled and not _shows(write(middle)):

            def write(value: float) -> str:
                return _plus(_signed(number(value * self.factor, 1)), value)

        return ranged(middle, interval.low, interval.high, write)

    def _write(self, value: float) -> str:
        scaled = value * self.factor
        if self._digits:
            return _signed(number(scaled, self._digits))
        return fixed(scaled, self.decimals)


def fixed(x: float, decimals: int) -> str:
    """Return a number with so many decimals, a half away from 0, and never a minus before zeros.

    It is the decimal number that is rounded, not the binary one that stands for it: what is shown
    does not depend on how the same number was computed.
    """
    known = Decimal(f"{x:.{_KNOWN_DIGITS}g}")
    text = f"{known.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP):f}"
    return _signed(text if _shows(text) else text.removeprefix("-"))


def ranged(middle: float, low: float, high: float, write: Callable[[float], str]) -> str:
    """Return a value with its interval in brackets; brackets mean that and nothing else."""
    return f"{write(middle)} [{write(low)}, {write(high)}]"


def quartiles(
    middle: float | None, low: float | None, high: float | None, write: Callable[[Any], str]
) -> str:
    """Return a median of repeated measurements and, in parentheses, the quartiles around it."""
    return f"{write(middle)} ({write(low)} to {write(high)})"


def relative(amount: float, low: float, high: float, margin: float) -> str:
    """Return a paired difference of logarithms, of which more is better, with its interval.

    As a ratio, ours over theirs, so that below 1 is better; in percent where so little matters that
    it is better told so. An interval without bounds is left out.
    """
    ends = [math.exp(-end) for end in (amount, high, low)]
    if margin < CLOSE:
        percents = [100 * (end - 1) for end in ends]
        digits = 0 if abs(percents[0]) >= 10 else 2
        middle, lowest, highest = (signed(x, digits) for x in percents)
        middle += "%"
    else:
        middle, lowest, highest = map(times, ends)
        middle = f"×{middle}"
    return f"{middle} [{lowest}, {highest}]" if math.isfinite(low + high) else middle


def smallest(margin: float) -> str:
    """Return the smallest difference of logarithms that matters."""
    factor = math.exp(margin)
    return f"{100 * (factor - 1):.3g}%" if margin < CLOSE else f"a factor of {factor:.3g}"


def times(x: float) -> str:
    """Return a ratio in two digits."""
    if math.isinf(x):
        return "∞"
    if 9.95 <= x < 1e5:
        return f"{x:,.0f}"
    return f"{x:#.2g}" if 1e-3 <= x < 1e5 else number(x, 2)


def signed(x: float, decimals: int) -> str:
    """Return a difference with its sign and so many decimals; 0 has none."""
    return _infinity(x) if math.isinf(x) else _plus(fixed(x, decimals), x)


def share(x: float) -> str:
    """Return a share in percent, which is 0% or 100% only if it is so exactly."""
    if 0.995 <= x < 1:
        return ">99%"
    return "<1%" if 0 < x < 0.005 else f"{100 * x:.0f}%"


def number(x: float | None, digits: int = 3) -> str:
    """Return a number of so many digits, without a plus in its exponent."""
    if x is None:
        return NOTHING
    if 10**digits <= abs(x) < 1e5:
        return f"{float(f'{x:.{digits}g}'):,.0f}"
    mantissa, _, exponent = f"{x:.{digits}g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def three_digits(value: float) -> str:
    """Return a number with three significant digits and never an exponent."""
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 1
    return f"{value:.{max(0, 3 - whole)}f}"


def amount(count: float) -> str:
    """Return a count, in millions if it is large."""
    return f"{count / 1e6:g}M" if count >= 1e6 else f"{count:,.0f}"


def rate(lr: float) -> str:
    """Return a learning rate, shortly."""
    mantissa, _, exponent = f"{lr:.2e}".partition("e")
    return f"{lr:g}" if 0.1 <= lr < 100 else f"{float(mantissa):g}e{int(exponent)}"


def seconds(value: float) -> str:
    """Return a time that was measured."""
    if not math.isfinite(value):
        return NOTHING
    if value < 1:
        return f"{three_digits(1e3 * value)} ms"
    return f"{three_digits(value)} s" if value < 1000 else f"{value / 60:.0f} min"


def duration(value: float) -> str:
    """Return a rough time in the largest unit of which there are at least two."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if value >= 2 * size:
            return f"{value / size:.0f} {unit}"
    return f"{value:.0f} s"


def listed(parts: Iterable[str]) -> str:
    """Return a list in words, with commas and "and" before the last."""
    *before, last = list(parts) or ["nothing"]
    return f"{', '.join(before)} and {last}" if before else last


def counted(count: int, unit: str, units: str = "") -> str:
    """Return how many of something there are."""
    return f"{count:,} {unit if count == 1 else units or unit + 's'}"


def spanned(counts: Iterable[float]) -> str:
    """Return the smallest and the largest of some numbers, or the one that they are."""
    found = sorted(set(counts)) or [0]
    return " to ".join(f"{end:,}" for end in dict.fromkeys((found[0], found[-1])))


def _infinity(x: float) -> str:
    return "+∞" if x > 0 else f"{MINUS}∞"


def _shows(text: str) -> bool:
    """Tell whether a number as written has a digit other than 0."""
    return any(digit in text for digit in "123456789")


def _signed(text: str) -> str:
    """Return a number as written with the sign of minus, but in its exponent."""
    return MINUS + text[1:] if text.startswith("-") else text


def _plus(text: str, x: float) -> str:
    """Return a number as written with a plus, if it is one that shows above 0."""
    return f"+{text}" if x > 0 and _shows(text) else text
