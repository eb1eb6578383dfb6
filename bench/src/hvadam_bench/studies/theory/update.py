"""The update that the paper's convergence theorems speak of, which is not the one people run.

Appendices B to D analyse HVAdam with four changes, none of which belongs in an optimizer:

- no bias correction, neither of m nor of s;
- a preconditioner that never falls: s_t = max(s_{t-1}, the running average), as in AMSGrad;
- rates that decay with t, other ones for the two steps, and a β1 that may decay, too;
- γ > 0, because the bounds hold powers of 1/γ.

Everything else is the listing's, and the hidden vector follows `scalars.advance`. Arrays are
(..., d) with one independent run in each leading place, because theorems speak of expectations.

Legend: theta parameters, g gradient, m its average, v hidden vector, s running average of the
preconditioner, root √s_t + ε of its maximum so far: the s_t^{1/2} of appendix C, which "absorbs ε
into s_t", and the 1/A_t of appendix D.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hvadam.core.hyperparams import Hyperparams
from hvadam.core.scalars import FIELDS, GAINS, INITIAL, advance

Array = NDArray[np.float64]


class Runs:
    """Independent runs from parameters (..., d), stepped together."""

    def __init__(self, theta: Array) -> None:
        self.theta = np.array(theta, dtype=np.float64)
        self.m, self.v, self.s, self.root = (np.zeros_like(self.theta) for _ in range(4))
        self.scalars = np.broadcast_to(INITIAL, (*self.theta.shape[:-1], len(FIELDS))).copy()

    @property
    def gain(self) -> Array:
        """Return b_t of every run."""
        return self.scalars[..., FIELDS.index("hidden_gain")]


def step(
    runs: Runs,
    g: Array,
    hyper: Hyperparams,
    *,
    adaptive_decay: float | Array = 1.0,
    hidden_decay: float | Array = 1.0,
    beta1_decay: float | Array = 1.0,
    monotone: bool | NDArray[np.bool_] = True,
) -> None:
    """Take one step of every run, in place.

    With α1 = ``lr``, α2 = ``lr * hidden_scale`` and β1 = ``betas[0] * beta1_decay``::

        θ ← Π(θ - α1·adaptive_decay·m/(√s + ε) - α2·hidden_decay·b·v)

    The projection onto a box is the same under every diagonal metric, so also under the theorem's.
    Decays, and ``monotone``, whether s takes AMSGrad's maximum, may differ by run: (..., 1).
    """
    beta1, beta2 = hyper.betas[0] * beta1_decay, hyper.betas[1]
    runs.m = beta1 * runs.m + (1 - beta1) * g
    p = (g - runs.v) ** 2
    eta = p / ((g - runs.m) ** 2 + hyper.gamma * p + hyper.eps)
    runs.s = beta2 * runs.s + (1 - beta2) * eta * p + hyper.eps
    root = np.sqrt(runs.s) + hyper.eps
    runs.root = np.where(monotone, np.maximum(runs.root, root), root)

    follow(runs, runs.m, hyper)
    theta = (
        runs.theta
        - hyper.lr * adaptive_decay * runs.m / runs.root
        - hyper.lr * hyper.hidden_scale * hidden_decay * runs.gain[..., None] * runs.v
    )
    runs.theta = theta if hyper.bounds is None else np.clip(theta, *hyper.bounds)


def follow(runs: Runs, m: Array, hyper: Hyperparams) -> None:
    """Move the hidden vectors, and their scalars, by averages m: all that appendix B looks at."""
    d = runs.v - m
    pairs = ((d, d), (d, runs.v), (m, m), (runs.v, runs.v))
    dots = np.stack([np.einsum("...i,...i", x, y) for x, y in pairs], axis=-1)
    mix, _, runs.scalars = advance(
        np,
        runs.scalars,
        dots,
        beta2=hyper.betas[1],
        threshold=hyper.restart_threshold,
        gain=GAINS[hyper.hidden_gain],
        restart_rule=hyper.restart_rule,
        rounding=np.finfo(np.float64).eps,
    )
    runs.v = runs.v - (1 - mix[..., None]) * d
