"""The scalar policy of HVAdam: dot products in, (mix, gain, next scalars) out.

One hidden vector v has a handful of scalars. Every decision about it (start, update, hold,
restart), the gain functions and the numerical guards live here and nowhere else, written once for
any array namespace ``xp`` (NumPy, torch, jax.numpy, `Floats`) without branches on values, so
that a device never waits for the host.

Legend:
    t       steps that brought a gradient                       ``step``
    t2      steps since the vector (re)started, -1 before       ``steps_since_restart``
    cosine  of v and m_hat after the update                     ``alignment``
    delta   its running average, biased                         ``alignment_ema``
    mix     weight kept on v: v <- mix v + (1 - mix) m_hat      ``mix``
    gain    b, the multiplier of the step along v               ``hidden_gain``
    k       the paper's weight on m_hat, 1 - mix
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Gain: TypeAlias = Callable[[Any], Any]

FIELDS = (
    "step",
    "steps_since_restart",
    "alignment_ema",
    "alignment",
    "mix",
    "hidden_gain",
    "restarts",
    "holds",
    "exp_avg_norm",
    "hidden_norm",
)
MIX, GAIN = FIELDS.index("mix"), FIELDS.index("hidden_gain")
INITIAL = (0.0, -1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)

# b as a function of delta, by the names that the option `hidden_gain` has for them.
GAINS: dict[str, Gain] = {
    "exponential": lambda delta: 10.0 ** (6.0 * delta - 3.0),
    "linear": lambda delta: delta / 0.9 * 10.0,
}

# v and m_hat count as equal when they differ by less than this many roundings of the state dtype:
# the bias-corrected average of a constant gradient wanders that far from the gradient itself.
ROUNDINGS = 8.0

# ‖foot‖² is a difference of squares. Dots that are off by some 1e-9 of themselves give the cosine
# to 1e-8 while it is above this share of the smaller one, and ‖v-m̂‖² is below so many times ‖m̂‖²;
# else the foot has to be measured.
CLEAR, SHORT = 0.01, 16.0


class Floats:
    """The array namespace of one hidden vector on a CPU: Python's floats.

    NumPy takes ten times as long over a single number, more than a small model's whole step.
    """

    isfinite = staticmethod(math.isfinite)
    sqrt = staticmethod(math.sqrt)
    logical_not = staticmethod(operator.not_)

    @staticmethod
    def where(condition: bool, yes: float, no: float) -> float:
        """Return one number or the other, by a condition."""
        return yes if condition else no

    @staticmethod
    def clip(x: float, low: float, high: float) -> float:
        """Return a number limited to a range; NaN passes."""
        return low if x < low else high if x > high else x


def advance(xp: Any, scalars: Any, dots: Any, **options: Any) -> tuple[Any, Any, Any]:
    """Decide what one step does to the hidden vectors.

    Args:
        xp: The array namespace of the arrays.
        scalars: (..., len(FIELDS)) float64, one row per scope.
        dots: (..., 4) float64: ‖v-m̂‖², <v-m̂,v>, ‖m̂‖², ‖v‖² of each scope.
        options: Those of `decide`.

    Returns:
        (mix, gain, next scalars), the first two of shape (...).

    Example:
        >>> import numpy as np
        >>> dots = np.array([35.457, 33.684, 2.0886, 34.0])  # Fig. 3, step 2, rounded
        >>> before = np.array([1.0, 0.0, *INITIAL[2:]])
        >>> mix, gain, after = advance(np, before, dots, beta2=0.999, threshold=0.1,
        ...     gain=GAINS["linear"], restart_rule="paper", rounding=2.0**-52)
        >>> round(float(mix), 3), dict(zip(FIELDS, after))["steps_since_restart"].item()
        (0.05, 1.0)
    """
    fields = [scalars[..., i] for i in range(len(FIELDS))]
    after = decide(xp, fields, [dots[..., i] for i in range(4)], **options)
    return after[MIX], after[GAIN], xp.stack(after, -1)


def decide(
    xp: Any,
    scalars: Sequence[Any],
    dots: Sequence[Any],
    *,
    beta2: Any,
    threshold: Any,
    gain: Gain,
    restart_rule: str,
    rounding: Any,
    active: Any = True,
    foot: Any = None,
) -> list[Any]:
    """Return the next value of each field, from the fields and the four dots, each by itself.

    Args:
        xp: The array namespace.
        scalars: One value per scope for each of FIELDS.
        dots: One value per scope for each of ‖v-m̂‖², <v-m̂,v>, ‖m̂‖² and ‖v‖².
        beta2: Decay of the alignment average, a float or one value per scope.
        threshold: Restart when the unbiased average falls under it; 0 never restarts.
        gain: b as a function of delta.
        restart_rule: "paper" moves v on the step that triggers a restart, "authors" keeps it.
        rounding: Machine epsilon of the dtype that v and m are kept in, one or one per scope.
        active: Whether the scope saw any gradient.
        foot: ‖foot‖² as measured on a v moved by `first_mix`, where the dots are kept in too
            few digits to tell it from them.
    """
    t, t2, delta, cosine, _, _, restarts, holds, m_norm, v_norm = scalars
    active = (t >= 0) & active  # one value per scope
    starting, updating = _cases(xp, t2, dots, active)
    moving = starting | updating  # else hold

    # Rows that do not update get harmless numbers, so that nothing below divides by zero.
    harmless = [xp.where(updating, x, 1.0) for x in dots]
    measured = None if foot is None else xp.where(updating, foot, 1.0)
    k, foot_cosine = _project(xp, harmless, rounding, measured)
    t2_next = t2 + updating
    delta_next = beta2 * delta + (1.0 - beta2) * foot_cosine
    delta_hat = delta_next / (1.0 - beta2 ** xp.where(updating, t2_next, 1.0))
    restarting = updating & (delta_hat < threshold)
    keep = restarting & (restart_rule == "authors")
    follows = updating & xp.logical_not(keep)

    m_norm_next = xp.where(moving, xp.sqrt(xp.where(moving, dots[2], 1.0)), m_norm)
    return [
        t + active,
        xp.where(starting, 0.0, xp.where(restarting, -1.0, t2_next)),
        xp.where(starting, 0.0, xp.where(updating, delta_next, delta)),
        xp.where(starting, 1.0, xp.where(updating, foot_cosine, cosine)),
        xp.where(follows, 1.0 - k, xp.where(starting, 0.0, 1.0)),
        xp.where(updating & xp.logical_not(restarting), gain(delta_next), 0.0),
        restarts + restarting,
        holds + (active & xp.logical_not(moving)),
        m_norm_next,
        xp.where(follows, foot_cosine * m_norm_next, xp.where(starting, m_norm_next, v_norm)),
    ]


def first_mix(
    xp: Any, scalars: Sequence[Any], dots: Sequence[Any], *, rounding: Any, active: Any = True
) -> Any:
    """Return the mix that moves v to the foot, before it is known whether v restarts.

    Who measures the foot moves v by this, and gives `decide` its squared norm. The mix that
    ``decide`` returns differs where ``restart_rule="authors"`` keeps v.

    Args:
        xp: The array namespace.
        scalars: One value per scope for each of FIELDS.
        dots: As `decide` takes them.
        rounding: Machine epsilon of the dtype that v and m are kept in, one or one per scope.
        active: Whether the scope saw any gradient.
    """
    t, t2 = scalars[:2]
    starting, updating = _cases(xp, t2, dots, (t >= 0) & active)
    k, _ = _project(xp, [xp.where(updating, x, 1.0) for x in dots], rounding, 1.0)
    return xp.where(updating, 1.0 - k, xp.where(starting, 0.0, 1.0))


def foot_is_clear(xp: Any, dots: Sequence[Any]) -> Any:
    """Return whether dots summed in float32, row by row, tell the cosine by themselves.

    Args:
        xp: The array namespace.
        dots: As `decide` takes them.
    """
    dd, dv, mm, vv = dots
    some = dd > 0
    foot = _foot(xp, xp.where(some, dd, 1.0), dv, mm, vv)
    return some & (foot > CLEAR * xp.where(vv < mm, vv, mm)) & (dd < SHORT * mm)


def piecewise(xp: Any, pieces: Sequence[tuple[Gain, int]]) -> Gain:
    """Return one gain out of several, each for its own run of consecutive scopes."""
    if len(pieces) == 1:
        return pieces[0][0]

    def gain(delta: Any) -> Any:
        values: list[Any] = []
        start = 0
        for function, count in pieces:
            values.append(function(delta[start : start + count]))
            start += count
        return xp.concatenate(values)

    return gain


def _cases(xp: Any, t2: Any, dots: Sequence[Any], active: Any) -> tuple[Any, Any]:
    """Return whether the hidden vector starts, and whether it is updated; it holds if neither."""
    started = t2 >= 0
    dd, dv, mm, vv = dots
    finite = xp.isfinite(dd) & xp.isfinite(dv) & xp.isfinite(mm) & xp.isfinite(vv)
    moving = active & finite & (started | (mm > 0))
    return moving & xp.logical_not(started), moving & started


def _project(xp: Any, dots: Sequence[Any], rounding: Any, measured: Any = None) -> tuple[Any, Any]:
    """Return k and the cosine of the new v with m_hat, from the dots of the old v.

    With d = v - m_hat the foot of the perpendicular from 0 onto the line through v and m_hat is
    v - k d, k = <d,v>/‖d‖². It is orthogonal to d, so its cosine with m_hat is ‖foot‖/‖m_hat‖. If
    ‖foot‖² was not measured, it is ‖x‖² - <d,x>²/‖d‖² for any x on the line. Taking the shorter of
    v and m_hat for x cancels least.
    """
    dd, dv, mm, vv = dots
    equal = dd <= (ROUNDINGS * rounding) ** 2 * vv
    dd = xp.where(equal, 1.0, dd)
    k = xp.where(equal, 0.0, dv / dd)

    foot = _foot(xp, dd, dv, mm, vv) if measured is None else measured
    nonzero = (mm > 0) & (vv > 0)
    # Limited before it is divided: next to a tiny m_hat the quotient itself would overflow.
    limited = xp.where(foot > mm, mm, xp.where(foot < 0, 0.0, foot))
    cosine = xp.where(equal, 1.0, xp.sqrt(limited / xp.where(nonzero, mm, 1.0)))
    return k, xp.where(nonzero, cosine, 0.0)


def _foot(xp: Any, dd: Any, dv: Any, mm: Any, vv: Any) -> Any:
    """Return ‖foot‖² as the dots tell it, by the shorter of v and m_hat."""
    dm = dv - dd
    return xp.where(vv < mm, vv - dv * (dv / dd), mm - dm * (dm / dd))
