"""HVAdam in float64 NumPy, line by line with the paper's listing, slow on purpose.

This is the judge of every other implementation, so it shares no arithmetic with them (but the
formulas of gains, which a test holds to the paper): the policy that `scalars.advance` writes
without branches stands here as plain ``if`` and ``else``. Comments give the listing's line numbers;
``docs/decisions`` says where and why we depart from it.

Legend: theta parameters, g gradient, m its average, v hidden vector, s preconditioner, t steps of
one tensor; scope.t2 steps since the hidden vector (re)started, scope.delta its alignment average.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hvadam.core.hyperparams import Hyperparams
from hvadam.core.scalars import GAINS, ROUNDINGS

Array = NDArray[np.float64]


@dataclass
class Slot:
    """A parameter tensor with its state."""

    theta: Array
    hyper: Hyperparams = field(default_factory=Hyperparams)
    m: Array = field(init=False)
    v: Array = field(init=False)
    s: Array = field(init=False)
    t: int = 0

    def __post_init__(self) -> None:
        self.theta = np.array(self.theta, dtype=np.float64)
        self.m, self.v, self.s = (np.zeros_like(self.theta) for _ in range(3))


@dataclass
class ScopeState:
    """The scalars of one hidden vector."""

    t: int = 0
    t2: int = -1
    delta: float = 0.0
    cosine: float = 0.0
    mix: float = 1.0
    gain: float = 0.0
    restarts: int = 0
    holds: int = 0


def step(
    scope: ScopeState,
    slots: Sequence[Slot],
    grads: Sequence[Array | None],
    *,
    rounding: float = float(np.finfo(np.float64).eps),
) -> None:
    """Take one step of all tensors that share one hidden vector, in place.

    Args:
        scope: The scalars of the hidden vector.
        slots: The tensors it spans. The first one's betas[1], restart_threshold, hidden_gain and
            restart_rule hold for all.
        grads: One gradient per slot, or None where there is none. Clipping (max_grad_norm) is the
            caller's, for it spans all scopes.
        rounding: Machine epsilon of the state that is being judged.

    Example:
        >>> slot = Slot(np.array([2.0, -1.0]))
        >>> scope = ScopeState()
        >>> for _ in range(3):
        ...     step(scope, [slot], [slot.theta.copy()])  # f = ‖θ‖²/2
        >>> slot.theta.round(4).tolist(), scope.t2
        ([1.9956, -0.9964], 2)
    """
    taken = [
        (slot, np.asarray(g, np.float64))
        for slot, g in zip(slots, grads, strict=True)
        if g is not None
    ]
    if not taken:
        return
    scope.t += 1

    for slot, grad in taken:
        h = slot.hyper
        beta1, beta2 = h.betas
        g = -grad if h.maximize else grad  # line 4
        if h.weight_decay_mode == "coupled":
            g = g + h.weight_decay * slot.theta
        slot.t += 1  # line 2
        slot.m = beta1 * slot.m + (1 - beta1) * g  # line 5
        if h.preconditioner == "adam":
            slot.s = beta2 * slot.s + (1 - beta2) * g**2
        else:
            p = (g - slot.v) ** 2  # line 6
            eta = p / ((g - slot.m) ** 2 + h.gamma * p + h.eps)  # line 7
            overflown = np.isinf(p) & np.isfinite(g)
            eta = np.where(overflown, np.inf, eta)  # not ∞/∞, which is no number
            slot.s = beta2 * slot.s + (1 - beta2) * eta * p + h.eps  # line 8

    m_hats = [slot.m / (1 - slot.hyper.betas[0] ** slot.t) for slot, _ in taken]  # line 10
    s_hats = [slot.s / (1 - slot.hyper.betas[1] ** slot.t) for slot, _ in taken]
    m_hat = np.concatenate([x.ravel() for x in m_hats])  # the full vectors, over all tensors
    v = np.concatenate([slot.v.ravel() for slot, _ in taken])
    v = _hidden_vector(scope, v, m_hat, taken[0][0].hyper, rounding)

    end = 0
    for (slot, _), slot_m_hat, slot_s_hat in zip(taken, m_hats, s_hats, strict=True):
        h = slot.hyper
        start, end = end, end + slot.v.size
        along_v = h.lr * h.hidden_scale * scope.gain
        if h.weight_decay_mode == "decoupled":
            slot.theta = slot.theta * (1 - h.lr * h.weight_decay)
        # the update after line 27
        slot.theta = slot.theta - h.lr * slot_m_hat / (np.sqrt(slot_s_hat) + h.eps)
        slot.v = v[start:end].reshape(slot.v.shape)
        slot.theta = slot.theta - along_v * slot.v
        if h.bounds is not None and h.lr != 0:
            slot.theta = np.clip(slot.theta, *h.bounds)


def _hidden_vector(
    scope: ScopeState, v: Array, m_hat: Array, h: Hyperparams, rounding: float
) -> Array:
    """Return the next v, by lines 11 to 26; the scope's scalars change in place."""
    d = v - m_hat
    dd, dv, mm, vv = (_sum(x) for x in (d * d, d * v, m_hat * m_hat, v * v))
    beta2 = h.betas[1]

    scope.mix, scope.gain = 1.0, 0.0
    if not all(map(math.isfinite, (dd, dv, mm, vv))) or (scope.t2 < 0 and mm == 0):
        scope.holds += 1
        return v + 0.0 * m_hat  # which spoils v where the average is not finite, and only there

    if scope.t2 < 0:  # line 25: start
        scope.t2, scope.delta, scope.cosine, scope.mix = 0, 0.0, 1.0, 0.0
        return m_hat.copy()

    scope.t2 += 1  # line 3
    equal = math.sqrt(dd) <= ROUNDINGS * rounding * math.sqrt(vv)
    k = 0.0 if equal else dv / dd  # lines 12 to 16
    foot = v - k * d  # line 17, with d = v - m_hat
    if mm == 0 or vv == 0:
        scope.cosine = 0.0
    elif equal:
        scope.cosine = 1.0
    else:
        # <foot, m_hat> = ‖foot‖², and ‖foot‖ is what the subtraction above leaves.
        scope.cosine = min(1.0, math.sqrt(math.fsum(foot * foot) / mm))
    scope.delta = beta2 * scope.delta + (1 - beta2) * scope.cosine  # line 18
    delta_hat = scope.delta / (1 - beta2**scope.t2)  # line 19
    if delta_hat < h.restart_threshold:  # lines 20 to 23
        scope.t2 = -1
        scope.restarts += 1
        if h.restart_rule == "authors":
            return v
        scope.mix = 1 - k
        return foot
    scope.mix = 1 - k
    scope.gain = GAINS[h.hidden_gain](scope.delta)  # line 20
    return foot


def _sum(x: Array) -> float:
    """Return the sum rounded once; NaN where it has none, as of ∞ and -∞, or it overflows."""
    try:
        return math.fsum(x)
    except (OverflowError, ValueError):
        return math.nan
