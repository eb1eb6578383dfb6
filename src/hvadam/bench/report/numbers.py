"""Numbers as a reader wants them: as many digits as the spread allows, no more."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence

from hvadam.bench import stats

MINUS = "−"
NOT_FID = "Fréchet distance (not FID)"


def measure(metric: str, measured: Container[str]) -> str:
    """What a metric is called, given all that was measured beside it.

    A Fréchet distance is FID with the features of Inception only, where "fid" is measured too.

    Example:
        >>> measure("valid_loss", ()), measure("frechet", ()), measure("frechet", {"fid"})
        ('valid loss', 'Fréchet distance (not FID)', 'FID')
    """
    if metric == "frechet":
        return "FID" if "fid" in measured else NOT_FID
    return metric.replace("_", " ")


class Units:
    """How values of one metric on one board are written, given those of each contender.

    The spread over seeds decides how many decimals they have. Accuracies are percentages; those
    that are given as shares are made so.

    Example:
        >>> units = Units(stats.Metric("accuracy", "max"), [[0.91, 0.93], [0.914]])
        >>> units.value(0.914), units.change(-0.005), units.name
        ('91.4', '−0.5', 'accuracy, %')
    """

    def __init__(
        self,
        metric: stats.Metric,
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
        self.decimals = _decimals([[value * self.factor for value in group] for group in finite])

    def value(self, value: float) -> str:
        """A value; a run that came to no end has none."""
        if math.isnan(value):
            return "–"
        return self._write(value) if math.isfinite(value) else "diverged"

    def change(self, value: float) -> str:
        """A difference, with its sign."""
        if math.isnan(value):
            return "–"
        if math.isinf(value):
            return "+∞" if value > 0 else f"{MINUS}∞"
        text = self._write(value)
        return text if value < 0 or not text.strip("0.") else f"+{text}"

    def bound(self, value: float) -> str:
        """An end of an interval of differences, without a plus."""
        return self.change(value).removeprefix("+")

    def interval(self, interval: stats.Interval, *, signed: bool = False) -> str:
        """Its ends in brackets."""
        write = self.change if signed else self.value
        return f"[{write(interval.low)}, {write(interval.high)}]"

    def _write(self, value: float) -> str:
        text = f"{value * self.factor:.{self.decimals}f}"
        text = text.removeprefix("-") if not text.strip("-0.") else text  # no minus zero
        return text.replace("-", MINUS)


def seconds(value: float) -> str:
    """A duration.

    Example:
        >>> seconds(0.00123), seconds(4.56), seconds(75.0), seconds(8000.0)
        ('1.23 ms', '4.56 s', '75.0 s', '133 min')
    """
    if not math.isfinite(value):
        return "–"
    if value < 1:
        return f"{_three(1e3 * value)} ms"
    return f"{_three(value)} s" if value < 1000 else f"{value / 60:.0f} min"


def chance(p: float) -> str:
    """A probability in words.

    Example:
        >>> chance(0.25), chance(0.0625), chance(1.0)
        ('1 time in 4', '1 time in 16', 'every time')
    """
    return "every time" if p >= 0.75 else f"1 time in {round(1 / p)}"


def _three(value: float) -> str:
    """Three significant digits, never an exponent."""
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 1
    return f"{value:.{max(0, 3 - whole)}f}"


def _decimals(groups: Sequence[Sequence[float]]) -> int:
    """So many that the spread over seeds of the typical contender shows in two digits."""
    spreads = sorted(max(group) - min(group) for group in groups if len(set(group)) > 1)
    largest = max((abs(value) for group in groups for value in group), default=0.0)
    spread = max(spreads[len(spreads) // 2] if spreads else 0.01 * largest, 1e-5 * largest)
    return 3 if spread <= 0 else min(6, max(0, 1 - math.floor(math.log10(spread))))
