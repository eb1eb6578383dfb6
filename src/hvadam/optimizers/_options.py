"""Ranges of options, and the messages that name a value out of range."""

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
