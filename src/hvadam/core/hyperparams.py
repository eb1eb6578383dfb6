"""Hyper-parameters: defaults, ranges and the messages that name a value out of range."""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args

from hvadam.core.scalars import GAINS

WeightDecayMode = Literal["decoupled", "coupled"]
HiddenGain = Literal["exponential", "linear"]  # of GAINS, for type checkers
Preconditioner = Literal["hidden", "adam"]
Scope = Literal["global", "group", "tensor"]
RestartRule = Literal["paper", "authors"]
StateDtype = Literal["float32", "bfloat16", "int8"]

# Below this ε may be flushed to zero in float32, and a zero gradient would divide 0 by 0.
SMALLEST_EPS = 2.0**-126
# From here on ε is Adam's size, but for the rounding of 1e-8 to float32.
LARGE_EPS = 1e-8 * (1 - 2.0**-24)


@dataclass(frozen=True)
class Hyperparams:
    """The hyper-parameters of one group of parameters. Construction checks every value.

    Raises:
        TypeError: a value of the wrong kind.
        ValueError: a value out of its range.

    Example:
        >>> Hyperparams(betas=(1.2, 0.999))
        Traceback (most recent call last):
        ValueError: HVAdam: betas[0] must be in [0, 1), got 1.2.
    """

    lr: Any = 1e-3  # a float, or the host framework's one-element tensor
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-12
    gamma: float = 0.5
    weight_decay: float = 0.0
    weight_decay_mode: WeightDecayMode = "decoupled"
    hidden_scale: float = 1.0
    hidden_gain: HiddenGain = "exponential"
    restart_threshold: float = 0.1
    preconditioner: Preconditioner = "hidden"
    scope: Scope = "global"
    restart_rule: RestartRule = "paper"
    bounds: tuple[float, float] | None = None
    maximize: bool = False
    max_grad_norm: float | None = None
    state_dtype: StateDtype = "float32"
    rounding_seed: int = 0

    def __post_init__(self) -> None:
        in_range("lr", self.lr, 0.0)
        betas = _pair("betas", self.betas)
        in_range("betas[0]", betas[0], 0.0, 1.0)
        in_range("betas[1]", betas[1], 0.0, 1.0)
        check_eps(self.eps)
        in_range("gamma", self.gamma, 0.0)
        in_range("weight_decay", self.weight_decay, 0.0)
        in_range("hidden_scale", self.hidden_scale, 0.0)
        in_range("restart_threshold", self.restart_threshold, 0.0, 1.0)
        one_of("weight_decay_mode", self.weight_decay_mode, get_args(WeightDecayMode))
        one_of("preconditioner", self.preconditioner, get_args(Preconditioner))
        one_of("scope", self.scope, get_args(Scope))
        one_of("restart_rule", self.restart_rule, get_args(RestartRule))
        one_of("state_dtype", self.state_dtype, get_args(StateDtype))
        one_of("hidden_gain", self.hidden_gain, tuple(GAINS))
        if self.bounds is not None:
            low, high = (_number("bounds", x) for x in _pair("bounds", self.bounds))
            if not low < high:
                raise ValueError(
                    f"HVAdam: bounds must be (low, high), low < high, got {low, high}."
                )
        if not isinstance(self.maximize, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"HVAdam: maximize must be True or False, got {self.maximize!r}.")
        if self.max_grad_norm is not None:
            norm = _number("max_grad_norm", self.max_grad_norm)
            if not 0.0 < norm < math.inf:
                raise ValueError(
                    "HVAdam: max_grad_norm must be > 0 and finite, or None for no clipping, got "
                    f"{norm:g}."
                )
        if isinstance(self.rounding_seed, bool) or not isinstance(self.rounding_seed, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"HVAdam: rounding_seed must be a whole number, got {self.rounding_seed!r}."
            )
        if not 0 <= self.rounding_seed < 2**32:
            raise ValueError(
                f"HVAdam: rounding_seed must be in [0, 2**32), got {self.rounding_seed}."
            )


def ablation(level: int | str) -> dict[str, Any]:
    """Return keyword arguments for a level of the paper's ablation: 0, 1, 2 or "full".

    Level 0 is Adam; 1 adds the hidden step, without restarts; 2 also takes the preconditioner
    from the hidden vector; "full" adds the restarts and is HVAdam.

    Example:
        >>> ablation(1)
        {'preconditioner': 'adam', 'hidden_scale': 1.0, 'restart_threshold': 0.0}
    """
    levels: dict[int | str, tuple[str, float, float]] = {
        0: ("adam", 0.0, 0.0),
        1: ("adam", 1.0, 0.0),
        2: ("hidden", 1.0, 0.0),
        "full": ("hidden", 1.0, 0.1),
    }
    if isinstance(level, bool) or level not in levels:
        raise ValueError(f"hvadam.ablation: level must be 0, 1, 2 or 'full', got {level!r}.")
    names = ("preconditioner", "hidden_scale", "restart_threshold")
    return dict(zip(names, levels[level], strict=True))


def one_of(name: str, value: Any, choices: tuple[str, ...], besides: str = "") -> None:
    """Refuse a value that is none of the choices, and list them."""
    if not (isinstance(value, str) and value in choices):
        listed = ", ".join(f"{choice!r}" for choice in choices)
        raise ValueError(
            f"HVAdam: {name} must be one of {listed}{' ' * bool(besides)}{besides}, got {value!r}."
        )


def check_eps(eps: Any) -> None:
    """Refuse an eps that float32 may flush to zero, or that is not finite."""
    if _number("eps", eps) < SMALLEST_EPS or not math.isfinite(eps):
        raise ValueError(
            "HVAdam: eps must be finite and at least 2**-126, float32's smallest normal "
            f"number, got {eps}."
        )


def warn_of_large_eps(eps: float, beta2: float) -> None:
    """Warn of an eps of Adam's size, which beside the hidden vector acts like a far larger one."""
    if eps >= LARGE_EPS:
        warn(
            f"HVAdam: eps={eps:g} acts like {math.sqrt(eps / (1 - beta2)):.0e} in the place of "
            "AdamW's eps, because it is added at every step; where gradients are smaller than "
            "that, the step hardly adapts to them. Leave eps out for 1e-12. If it is meant: "
            'warnings.filterwarnings("ignore", message="HVAdam: eps").'
        )


def warn(message: str) -> None:
    """Warn in the name of the line that called this package, so that each such line warns once."""
    level, frame = 1, sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_globals.get("__name__", "").startswith("hvadam."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def in_range(name: str, value: Any, low: float, below: float = math.inf) -> None:
    """Refuse a number outside of [low, below)."""
    number = _number(name, value)
    if not low <= number < below:
        rule = f">= {low:g} and finite" if below == math.inf else f"in [{low:g}, {below:g})"
        raise ValueError(f"HVAdam: {name} must be {rule}, got {number:g}.")


def _number(name: str, value: Any) -> float:
    """Return a value as a float, or refuse what is not a number."""
    plain = not isinstance(value, bool) and isinstance(value, Real)
    if not plain and not (name == "lr" and hasattr(value, "item")):  # lr may be a tensor
        raise TypeError(f"HVAdam: {name} must be a number, got {value!r}.")
    number = float(value)
    if math.isnan(number):
        raise ValueError(f"HVAdam: {name} must be a number, got nan.")
    return number


def _pair(name: str, value: Any) -> tuple[Any, Any]:
    """Return the two items of a pair, or refuse what is none."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:  # pyright: ignore[reportUnknownArgumentType]
        raise TypeError(f"HVAdam: {name} must be a pair of numbers, got {value!r}.")
    return value[0], value[1]  # pyright: ignore[reportUnknownVariableType]
