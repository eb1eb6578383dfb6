"""The options of the transformation: what they may be, refused at construction as torch's are.

A number may be a Python float, an array, or traced (``optax.inject_hyperparams``). Its range is
checked where its value is known, its dtype always.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from numbers import Real
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, get_args

import jax
import jax.numpy as jnp
from jax.core import Tracer

from hvadam.core import hyperparams
from hvadam.core.hyperparams import HiddenGain, Preconditioner, RestartRule
from hvadam.core.scalars import GAINS, Gain

Scope = Literal["global", "tensor"]

# Options of torch's HVAdam, and of the alias, by what stands in their place.
INSTEAD = {
    **{"lr": "learning_rate", "betas": "b1 and b2"},
    "learning_rate": "a link of the chain, optax.scale_by_learning_rate",
    "weight_decay": "a link of the chain, optax.add_decayed_weights",
    "max_grad_norm": "a link of the chain, optax.clip_by_global_norm",
    "maximize": "a link of the chain, optax.scale(-1)",
}
P = ParamSpec("P")
R = TypeVar("R")


class Options(NamedTuple):
    """The options of one transformation; numbers may be traced."""

    b1: Any
    b2: Any
    eps: Any
    gamma: Any
    hidden_scale: Any
    hidden_gain: HiddenGain
    restart_threshold: Any
    preconditioner: Preconditioner
    scope: Scope
    restart_rule: RestartRule
    axis_name: tuple[str, ...] | None

    @property
    def gain(self) -> Gain:
        """Return the gain as a function of the alignment average."""
        return GAINS[self.hidden_gain]


def check(o: Options) -> None:
    """Refuse a value out of its range, naming it.

    Raises:
        TypeError: A value of the wrong kind.
        ValueError: A value out of its range, or an unknown name.
    """
    for name, value, below in (
        ("b1", o.b1, 1.0),
        ("b2", o.b2, 1.0),
        ("gamma", o.gamma, jnp.inf),
        ("hidden_scale", o.hidden_scale, jnp.inf),
        ("restart_threshold", o.restart_threshold, 1.0),
    ):
        if _is_known(name, value):
            hyperparams.in_range(name, _plain(value), 0.0, below)
    if _is_known("eps", o.eps):
        hyperparams.check_eps(_plain(o.eps))
        if o.preconditioner != "adam" and _is_known("b2", o.b2):
            hyperparams.warn_of_large_eps(_plain(o.eps), _plain(o.b2))
    hyperparams.one_of("hidden_gain", o.hidden_gain, tuple(GAINS))
    hyperparams.one_of("preconditioner", o.preconditioner, get_args(Preconditioner))
    hyperparams.one_of("restart_rule", o.restart_rule, get_args(RestartRule))
    way_out = "(optax.partition gives each label a hidden vector of its own)"
    hyperparams.one_of("scope", o.scope, get_args(Scope), way_out)


def answers_other_names(function: Callable[P, R]) -> Callable[P, R]:
    """Have a function refuse keyword arguments that it does not have with the right name.

    Around it and not in it: Optax and editors read its signature.
    """
    known = [*inspect.signature(function).parameters]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name in known:
                continue
            instead = INSTEAD.get(name)
            instead = instead if instead not in INSTEAD or instead in known else INSTEAD[instead]
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise TypeError(
                f"HVAdam: {function.__name__} got an unexpected keyword argument {name!r}"
                f"{f'; here it is {instead}.' if instead else hint}"
            )
        return function(*args, **kwargs)

    return checked


def check_rate(name: str, value: Any) -> None:
    """Refuse a rate that is negative, not finite or no number; a schedule is taken as it is."""
    if not callable(value) and _is_known(name, value):
        hyperparams.in_range(name, _plain(value), 0.0)


def axes(axis_name: Any) -> tuple[str, ...] | None:
    """Return the names of mesh axes as a tuple; None stays None."""
    if axis_name is None:
        return None
    names = (axis_name,) if isinstance(axis_name, str) else axis_name
    if not isinstance(names, (tuple, list)) or not all(isinstance(x, str) for x in names):
        raise TypeError(
            "HVAdam: axis_name must be the name of a mesh axis, a tuple of names or None, got "
            f"{axis_name!r}."
        )
    return tuple(names)


def _is_known(name: str, value: Any) -> bool:
    """Return whether a number's value can be looked at now; refuse dtypes that round it away."""
    if not isinstance(value, jax.Array):
        return True
    if jnp.issubdtype(value.dtype, jnp.floating) and value.dtype.itemsize < 4:
        raise ValueError(
            f"HVAdam: {name} must be float32 or wider, got {value.dtype}, in which 0.999 is 1; "
            "with optax.inject_hyperparams say hyperparam_dtype=jnp.float32."
        )
    return not isinstance(value, Tracer)


def _plain(value: Any) -> Any:
    """Return an array of one number as a float; anything else, to be judged, as it is."""
    if isinstance(value, Real) or not hasattr(value, "item") or getattr(value, "size", 1) != 1:
        return value
    return value.item()
