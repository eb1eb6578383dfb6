"""Checks of options beyond the plain ranges of `_options`, with messages of the same form."""

from __future__ import annotations

import math
from typing import Any


def positive(who: str, name: str, value: Any) -> None:
    """Refuse a value outside (0, ∞).

    Example:
        >>> positive("Yogi", "eps", 0)
        Traceback (most recent call last):
        ValueError: Yogi: eps must be > 0 and finite, got 0.
    """
    if not 0 < float(value) < math.inf:
        raise ValueError(f"{who}: {name} must be > 0 and finite, got {float(value):g}.")


def between(who: str, name: str, value: Any, low: float, high: float) -> None:
    """Refuse a value outside [low, high], ends included."""
    if not low <= float(value) <= high:
        raise ValueError(f"{who}: {name} must be in [{low:g}, {high:g}], got {float(value):g}.")


def whole(who: str, name: str, value: Any, low: int) -> None:
    """Refuse what is not an int of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ValueError(f"{who}: {name} must be a whole number >= {low}, got {value!r}.")


def one_of(who: str, name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Refuse what is none of the choices, and list them."""
    if value not in choices:
        listed = ", ".join(f"{choice!r}" for choice in choices)
        raise ValueError(f"{who}: {name} must be one of {listed}, got {value!r}.")
