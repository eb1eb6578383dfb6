"""When the three studies look at their runs, and how they fit slopes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
RESAMPLES = 200


def checkpoints(last: int, per_decade: int = 8) -> Array:
    """Return whole numbers from 1 to ``last``, evenly spread in logarithm, with all powers of ten.

    Example:
        >>> checkpoints(100, per_decade=4).tolist()
        [1, 2, 3, 6, 10, 18, 32, 56, 100]
    """
    count = int(np.ceil(per_decade * np.log10(last)))
    points = np.round(10 ** (np.arange(count) / per_decade)).astype(int)
    return np.unique(np.append(points[points < last], last))


def power(times: Array, values: Array, where: Array) -> float | None:
    """Fit the exponent of a power law, least squares between logarithms; None if that cannot be.

    Example:
        >>> t = np.array([1.0, 10.0, 100.0])
        >>> round(power(t, 3 * t**-0.5, t > 0), 6)
        -0.5
    """
    chosen = values[where]
    if len(chosen) < 2 or not np.isfinite(chosen).all() or (chosen <= 0).any():
        return None
    return float(np.polyfit(np.log(times[where]), np.log(chosen), 1)[0])


def interval(samples: Array, fit: Callable[[Array], float | None]) -> dict[str, float] | None:
    """Fit the mean of samples (runs, times), with the 95% interval of a bootstrap over runs.

    Returns:
        The fields of a `Fit`; None if a fit to the mean, or to any resample, cannot be.
    """
    value = fit(samples.mean(0))
    rng = np.random.default_rng(0)
    rows = rng.integers(len(samples), size=(RESAMPLES, len(samples)))
    found = [fit(samples[chosen].mean(0)) for chosen in rows]
    fits = [x for x in found if x is not None]
    if value is None or len(fits) < len(found):
        return None
    low, high = np.percentile(fits, [2.5, 97.5])
    return {"value": value, "low": low, "high": high, "runs": len(samples)}
