"""What was measured of the theorems, ``results/theory.json``: slopes of curves, and verdicts.

Wherever a curve or a measurement is None, its runs diverged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hvadam_bench.studies._words import FAILS, VACUOUS, all_of, on_bound

# What the theorems are called: by what they are of, and where the paper proves them.
HIDDEN_VECTOR = "Hidden vector (appendix B)"
REGRET = "Regret (appendix C)"
NONCONVEX = "Non-convex rate (appendix D)"

Array = NDArray[Any]
RESAMPLES = 200


class Tally(NamedTuple):
    """In how many cases something is so, and of how many."""

    count: int
    of: int

    def __str__(self) -> str:
        return f"{self.count} of {self.of}"


class Standing(NamedTuple):
    """How a theorem stands: in how many cases it is true, in how many of these it says nothing."""

    within: Tally
    vacuous: Tally
    verdict: str  # the one word for all of them


@dataclass(frozen=True)
class Theory:
    """The whole study: what `study` of the modules of these names returns."""

    versions: Mapping[str, str]
    hidden_vector: Mapping[str, Any]
    regret: Mapping[str, Any]
    nonconvex: Mapping[str, Any]

    @property
    def standings(self) -> Mapping[str, Standing]:
        """Return how each theorem stands at the end of the runs, corrected where it need be.

        Without a theorem the hidden vector is no further from the trend than the first average,
        regret is at most the steepest slope over the whole domain in every round, and a gradient
        is no longer than its coordinates allow.
        """
        cases = {
            HIDDEN_VECTOR: [
                (found["bound"][-1], found["least_noise"][0], found["within_bound"])
                for case in self.hidden_vector["cases"]
                if (found := case["measured"])
            ],
            REGRET: [
                (bound["total"][-1], one["constants"]["trivial"], bound["holds"])
                for family in self.regret["families"]
                for one in family["variants"]
                if one["proof"] and (bound := one["proof"]["corrected"])
            ],
            NONCONVEX: [
                (bound["values"][-1], problem["trivial"], bound["holds"])
                for problem in self.nonconvex["problems"]
                for case in problem["cases"]
                if (bound := case["corrected"])
            ],
        }
        return {theorem: _standing(own) for theorem, own in cases.items()}


def tally(found: Iterable[bool]) -> Tally:
    """Count in how many cases something is so."""
    every = list(found)
    return Tally(sum(every), len(every))


def _standing(cases: Iterable[tuple[float, float, bool]]) -> Standing:
    """Return how a theorem stands, from (bound, what holds without it, whether it is true)."""
    words = [on_bound(bound, trivial, within=within) for bound, trivial, within in cases]
    vacuous = tally(word == VACUOUS for word in words if word != FAILS)
    return Standing(Tally(vacuous.of, len(words)), vacuous, all_of(words))


def checkpoints(last: int, per_decade: int = 8) -> Array:
    """Return whole numbers from 1 to ``last``, evenly spread in logarithm, with all powers of ten.

    Example:
        >>> checkpoints(100, per_decade=4).tolist()
        [1, 2, 3, 6, 10, 18, 32, 56, 100]
    """
    count = int(np.ceil(per_decade * np.log10(last)))
    points = np.round(10 ** (np.arange(count) / per_decade)).astype(int)
    return np.unique(np.append(points[points < last], last))


def curve(
    times: Array, samples: Array, fit: Callable[[Array, Array, Array], Any]
) -> dict[str, Any] | None:
    """Return the mean of samples (runs, times) with its ends, and its slope in the last decade."""
    if not np.isfinite(samples).all():
        return None
    slope = fit(times, samples, times >= times[-1] / 10)
    return {"mean": samples.mean(0), "low": samples.min(0), "high": samples.max(0), "slope": slope}


def power(times: Array, samples: Array, where: Array) -> float | None:
    """Fit the exponent of a power law to the mean of samples (runs, times); None if that fails."""
    chosen = samples.mean(0)[where]
    if len(chosen) < 2 or not np.isfinite(chosen).all() or (chosen <= 0).any():
        return None
    return float(np.polyfit(np.log(times[where]), np.log(chosen), 1)[0])


def interval(times: Array, samples: Array, where: Array) -> dict[str, float] | None:
    """Fit a power law with the 95% interval of a bootstrap over runs; None if any fit fails."""
    rng = np.random.default_rng(0)
    rows = rng.integers(len(samples), size=(RESAMPLES, len(samples)))
    value, *found = [power(times, x, where) for x in (samples, *(samples[own] for own in rows))]
    fits = [x for x in found if x is not None]
    if value is None or len(fits) < len(found):
        return None
    low, high = np.percentile(fits, [2.5, 97.5])
    return {"value": value, "low": low, "high": high, "runs": len(samples)}
