"""The values that a fair sweep tries."""

from __future__ import annotations

import math


def log_grid(low: float, high: float) -> tuple[float, ...]:
    """Return the values from low to high in steps of about 3: 1, 3, 10, 30 and so on.

    Example:
        >>> log_grid(1e-3, 1e-1)
        (0.001, 0.003, 0.01, 0.03, 0.1)
    """
    values: list[float] = []
    for exponent in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        values += [float(f"{digit}e{exponent}") for digit in (1, 3)]
    return tuple(value for value in values if low <= value <= high)
