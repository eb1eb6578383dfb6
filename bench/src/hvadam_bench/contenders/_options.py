"""Checks of options, and the messages that name a value out of range."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
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


def require_betas(who: str, betas: Any, count: int = 2) -> None:
    """Refuse what is not as many averaging weights.

    Example:
        >>> require_betas("Lion", (0.9, 1.0))
        Traceback (most recent call last):
        ValueError: Lion: betas[1] must be in [0, 1), got 1.
    """
    if not isinstance(betas, (tuple, list)) or len(betas) != count:
        many = {2: "a pair of", 3: "three"}[count]
        raise ValueError(f"{who}: betas must be {many} numbers, got {betas!r}.")
    for i, beta in enumerate(betas):
        require(who, f"betas[{i}]", beta, 0.0, 1.0)


def positive(who: str, name: str, value: Any, most: float = math.inf) -> None:
    """Refuse a value outside (0, most], and infinity.

    Example:
        >>> positive("Yogi", "eps", 0)
        Traceback (most recent call last):
        ValueError: Yogi: eps must be > 0 and finite, got 0.
    """
    number = float(value)
    if not 0 < number <= most or math.isinf(number):
        rule = "> 0 and finite" if most == math.inf else f"in (0, {most:g}]"
        raise ValueError(f"{who}: {name} must be {rule}, got {number:g}.")


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


def require_all(
    who: str, options: Mapping[str, Any], own: Mapping[str, Callable[[str, str, Any], None]]
) -> None:
    """Refuse options out of range, by checks of their own or else the usual one of their name."""
    for name, check in {**USUAL, **own}.items():
        if name in options or name in own:
            check(who, name, options.get(name))


share = partial(require, below=1.0)
USUAL: Mapping[str, Callable[[str, str, Any], None]] = {
    "lr": require,
    "weight_decay": require,
    "betas": lambda who, _, value: require_betas(who, value),
    "eps": positive,
    "momentum": share,
    "inner": partial(one_of, choices=("sgd", "adam")),
    "k": partial(whole, low=1),
}
