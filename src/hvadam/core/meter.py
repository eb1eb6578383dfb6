"""What a gradient is made of: trend, zigzag and the rest, from the dots of one pass.

The hidden vector v splits the momentum at a right angle, m_hat = v + z: v is the trend, z the
zigzag. The next gradient g is held against both before it enters the momentum:

    trend  = cos²(g, v), negative where g points against v
    zigzag = cos²(g, z) where g points against z, and 0 where it does not
    rest   = 1 - |trend| - zigzag

Across a valley g points against z again and again; noise is orthogonal to v and to z if there are
many dimensions. One z cannot hold a zigzag in many directions, so the rest is no level of noise.

Written once for any array namespace ``xp``, as the policy in ``scalars``, which moves v.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hvadam.core import scalars as policy

SHARES = ("trend", "zigzag", "rest")
# The policy's scalars of v; how many gradients were read; the last shares; their averages, biased.
FIELDS = (*policy.FIELDS, "readings", *SHARES, *(f"{name}_sum" for name in SHARES))
INITIAL = (*policy.INITIAL, *[0.0] * (len(FIELDS) - len(policy.INITIAL)))
# The paper's defaults: the decay of the alignment average, and where v restarts.
BETA2, THRESHOLD = 0.999, 0.1
AVERAGE = 20  # readings, about as many as an average remembers


def advance(
    xp: Any, state: Sequence[Any], dots: Sequence[Any], *, rounding: float
) -> tuple[Any, list[Any]]:
    """Move v to where the momentum puts it, and hold a gradient against it.

    Args:
        xp: The array namespace.
        state: One value for each of FIELDS.
        dots: ‖v-m̂‖², <v-m̂,v>, ‖m̂‖², ‖v‖², ‖g‖², <g,v> and <g,v-m̂>: m̂ is the momentum before
            g enters it, and v what the last gradient found it to be.
        rounding: Machine epsilon of the dtype that v and m are kept in.

    Returns:
        The weight that stays on v, which becomes ``mix v + (1 - mix) m̂``, and the next state. A
        gradient that cannot be read (zero, not finite, or with no momentum before it) leaves the
        averages as they are, and its shares are NaN.

    Example:
        >>> state = list(INITIAL)
        >>> state[1] = 0.0  # a hidden vector has started: v = (1, 1), m̂ = (1, 0), g = (1, 1)
        >>> mix, after = advance(policy.Floats, state, [1, 1, 1, 2, 2, 2, 1], rounding=2**-52)
        >>> mix, dict(zip(FIELDS, after))["rest"]  # v is (1, 0): half of g lies along it
        (0.0, 0.5)
    """
    vector, (readings, *rest) = state[: len(policy.FIELDS)], state[len(policy.FIELDS) :]
    dd, dv, mm, vv, gg, gv, gd = dots
    moved = policy.decide(
        xp,
        vector,
        [dd, dv, mm, vv],
        beta2=BETA2,
        threshold=THRESHOLD,
        gain=policy.GAINS["linear"],  # nobody steps by it
        restart_rule="paper",
        rounding=rounding,
    )
    mix, norm = moved[policy.MIX], moved[policy.FIELDS.index("hidden_norm")]

    # With the new v, m̂ - v is mix times what it was: the same direction, or the opposite one.
    along, across = gv - (1.0 - mix) * gd, -mix * gd
    readable = xp.isfinite(gg) & xp.isfinite(gv) & xp.isfinite(gd) & (gg > 0) & (norm > 0)
    apart = dd > (policy.ROUNDINGS * rounding) ** 2 * vv  # m̂ - v is more than rounding
    against = readable & apart & (across < 0)
    shares = _shares(xp, readable, against, gg, (along, norm * norm), (gd, dd))

    decay = 1.0 - 1.0 / AVERAGE
    sums = [
        xp.where(readable, decay * old + (1.0 - decay) * share, old)
        for old, share in zip(rest[len(SHARES) :], shares, strict=True)
    ]
    shown = [xp.where(readable, share, float("nan")) for share in shares]
    return mix, [*moved, readings + readable, *shown, *sums]


def shares_of_step(
    before: Sequence[float], dots: Sequence[float], gg: float, *, beta1: float, rounding: float
) -> dict[str, float]:
    """Return the shares of the gradient of a step of HVAdam, from what the step knows anyway.

    The step sums the dots of v and m̂ with the gradient in m̂ already. What <g,v> and <g,m̂> were
    follows from them, because v and m̂ met at a right angle after the step before. Each tensor
    must have had a gradient at every step.

    Args:
        before: One value for each of the policy's FIELDS, as they were before the step.
        dots: ‖v-m̂‖², <v-m̂,v>, ‖m̂‖², ‖v‖² of the step, m̂ with the gradient in it.
        gg: ‖g‖², as g entered m.
        beta1: Decay of m.
        rounding: Machine epsilon of the dtype that v and m are kept in.
    """
    fields = dict(zip(policy.FIELDS, before, strict=True))
    _, dv, mm, vv = dots
    now, then = (1.0 - beta1**t for t in (fields["step"] + 1.0, fields["step"]))
    # After a step that held v, there is no right angle; before the first one, nothing at all.
    readable = fields["step"] > 0 and fields["mix"] != 1.0 and gg > 0 and vv > 0 and beta1 > 0
    if not (readable and math.isfinite(sum(dots) + gg)):
        return dict.fromkeys(SHARES, math.nan)
    old = fields["exp_avg_norm"] ** 2  # ‖m̂‖² before; <m̂,v> was ‖v‖²
    gv = (now * (vv - dv) - beta1 * then * vv) / (1.0 - beta1)
    gm = (now**2 * mm - (beta1 * then) ** 2 * old - ((1.0 - beta1) ** 2) * gg) / (
        2.0 * beta1 * (1.0 - beta1) * then
    )
    zz = old - vv
    against = zz > (policy.ROUNDINGS * rounding) ** 2 * vv and gm < gv
    found = _shares(policy.Floats, True, against, gg, (gv, vv), (gm - gv, zz))
    return dict(zip(SHARES, found, strict=True))


def reading(state: Sequence[float]) -> dict[str, float]:
    """Return the last shares, their averages and the alignment of v, by their names.

    Averages are NaN before the first gradient that could be read.
    """
    values = dict(zip(FIELDS, state, strict=True))
    weight = 1.0 - (1.0 - 1.0 / AVERAGE) ** values["readings"]
    averages = {
        f"{name}_average": values[f"{name}_sum"] / weight if weight else float("nan")
        for name in SHARES
    }
    kept = ("readings", "alignment", "alignment_ema", "restarts")
    return {
        **{name: values[name] if weight else float("nan") for name in SHARES},
        **averages,
        **{name: values[name] for name in kept},
    }


def _shares(
    xp: Any, readable: Any, against: Any, gg: Any, trend: tuple[Any, Any], zigzag: tuple[Any, Any]
) -> list[Any]:
    """Return trend, zigzag and rest.

    Args:
        xp: The array namespace.
        readable: Whether the gradient can be read.
        against: Whether it points against the zigzag.
        gg: ‖g‖².
        trend: <g,v> and ‖v‖².
        zigzag: <g,z> and ‖z‖².
    """
    (along, vv), (across, zz) = trend, zigzag
    led = along * abs(along) / xp.where(readable, gg * vv, 1.0)
    turned = xp.where(against, across**2 / xp.where(against, gg * zz, 1.0), 0.0)
    turned = xp.clip(turned, 0.0, 1.0)  # rounding may exceed 1
    led = xp.clip(led, turned - 1.0, 1.0 - turned)
    return [led, turned, 1.0 - abs(led) - turned]
