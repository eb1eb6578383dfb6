"""Checks of options, and the messages that name a value out of range."""

from __future__ import annotations

import math
from typing import Any


def require(who: str, name: str, value: Any, low: float = 0.0, below: float = math.inf) -> None:
    """Refuse a value outside [low, below).

    Example:
        >>> require("Lion", "lr", -1.0)
        Traceback (most recent call last):
        ValueError: Lion: lr must be >= 0 and finite, got -1.
    """
    number = float(value)
    if not low <= number < below:
        rule = f">= {low:g} and finite" if below == math.inf else f"in [{low:g}, {below:g})"
        raise ValueError(f"{who}: {name} must be {rule}, got {number:g}.")


def require_betas(who: str, betas: Any) -> None:
    """Refuse what is not a pair of averaging weights.

    Example:
        >>> require_betas("Lion", (0.9, 1.0))
        Traceback (most recent call last):
        ValueError: Lion: betas[1] must be in [0, 1), got 1.
    """
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise ValueError(f"{who}: betas must be a pair of numbers, got {betas!r}.")
    for i, beta in enumerate(betas):
        require(who, f"betas[{i}]", beta, 0.0, 1.0)


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
