"""The update that the paper's convergence theorems speak of, which is not the one people run.

Appendices B to D analyse HVAdam with four changes, none of which belongs in an optimizer:

- no bias correction, neither of m nor of s;
- a preconditioner that never falls: s_t = max(s_{t-1}, the running average), as in AMSGrad;
- rates that decay with t, other ones for the two steps, and a β1 that may decay, too;
- γ > 0, for the bounds hold powers of 1/γ.

Everything else is the listing's, and the hidden vector follows `scalars.advance`. Arrays are
(..., d) with one independent run in each leading place, for theorems speak of expectations.

Legend: theta parameters, g gradient, m its average, v hidden vector, s running average of the
preconditioner, root √s_t + ε of its maximum so far: the s_t^{1/2} of appendix C, which "absorbs ε
into s_t", and the 1/A_t of appendix D.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hvadam.core.hyperparams import Hyperparams
from hvadam.core.scalars import FIELDS, GAINS, INITIAL, advance

Array = NDArray[np.float64]
# A number for all runs, or an array that spreads over (..., d).
PerRun: TypeAlias = float | Array
_GAIN = FIELDS.index("hidden_gain")


@dataclass
class Runs:
    """Independent runs, stepped together."""

    theta: Array
    m: Array = field(init=False)
    v: Array = field(init=False)
    s: Array = field(init=False)
    root: Array = field(init=False)
    scalars: Array = field(init=False)

    def __post_init__(self) -> None:
        self.theta = np.array(self.theta, dtype=np.float64)
        self.m, self.v, self.s, self.root = (np.zeros_like(self.theta) for _ in range(4))
        self.scalars = np.broadcast_to(INITIAL, (*self.theta.shape[:-1], len(FIELDS))).copy()

    @property
    def gain(self) -> Array:
        """Return b_t of every run."""
        return self.scalars[..., _GAIN]


def step(
    runs: Runs,
    g: Array,
    hyper: Hyperparams,
    *,
    adaptive_decay: PerRun = 1.0,
    hidden_decay: PerRun = 1.0,
    beta1_decay: PerRun = 1.0,
    monotone: bool | NDArray[np.bool_] = True,
) -> None:
    """Take one step of every run, in place.

    With α1 = ``lr``, α2 = ``lr * hidden_scale`` and β1 = ``betas[0]``::

        θ ← Π(θ - α1·adaptive_decay·m/(√s + ε) - α2·hidden_decay·b·v)

    The projection onto a box is the same under every diagonal metric, so also under the theorem's.

    Args:
        runs: The runs.
        g: Their gradients.
        hyper: lr, betas, eps, gamma, hidden_scale, hidden_gain, restart_threshold and bounds.
        adaptive_decay: What the schedule makes of α1 at this step, such as t**-0.5.
        hidden_decay: What it makes of α2, such as 1/t.
        beta1_decay: What it makes of β1, such as λ**(t-1).
        monotone: Whether s takes AMSGrad's maximum; one value per run, (..., 1), to compare.

    Example:
        >>> runs = Runs(np.array([[2.0, -1.0], [0.5, 0.5]]))  # two runs in the plane
        >>> hyper = Hyperparams(lr=0.1, bounds=(-2.0, 2.0))
        >>> for t in range(1, 401):
        ...     step(runs, runs.theta, hyper, adaptive_decay=t**-0.5, hidden_decay=1 / t)
        >>> bool((abs(runs.theta) < 0.3).all())  # f = ‖θ‖²/2
        True
    """
    beta1, beta2 = hyper.betas[0] * beta1_decay, hyper.betas[1]
    runs.m = beta1 * runs.m + (1 - beta1) * g
    p = (g - runs.v) ** 2
    eta = p / ((g - runs.m) ** 2 + hyper.gamma * p + hyper.eps)
    runs.s = beta2 * runs.s + (1 - beta2) * eta * p + hyper.eps
    root = np.sqrt(runs.s) + hyper.eps
    runs.root = np.where(monotone, np.maximum(runs.root, root), root)

    follow(runs, runs.m, hyper)
    gain = runs.gain[..., None]
    theta = (
        runs.theta
        - hyper.lr * adaptive_decay * runs.m / runs.root
        - hyper.lr * hyper.hidden_scale * hidden_decay * gain * runs.v
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
