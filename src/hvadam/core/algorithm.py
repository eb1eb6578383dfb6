"""HVAdam in thirty lines: one step, from the gradient to the new parameters. Read this first.

Plain NumPy, the default options, no case that does not arise in ordinary training: gradients are
finite and not all zero. `reference` has every option and every guard, and judges the kernels; a
test holds this to it.

    paper   here    in the optimizer's state
    m       m       exp_avg                 average of the gradients
    s       s       exp_avg_var             preconditioner
    v       v       hidden                  hidden vector, over all parameters at once
    δ       delta   alignment_ema           average cosine of v and m_hat
    t2      age     steps_since_restart     steps since v (re)started, -1 before
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.linalg import norm
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass
class State:
    """What is kept from step to step; zeros stand for vectors of zeros."""

    t: int = 0
    m: Any = 0.0
    s: Any = 0.0
    v: Any = 0.0
    delta: Any = 0.0
    age: int = -1


def hvadam_step(theta: Vector, g: Vector, state: State, lr: float = 1e-3) -> Vector:
    """Return the parameters after one step; theta and g are all parameters as one vector."""
    beta1, beta2, eps, gamma, threshold = 0.9, 0.999, 1e-12, 0.5, 0.1
    state.t += 1
    state.m = beta1 * state.m + (1 - beta1) * g  # Adam's momentum
    p = (g - state.v) ** 2  # how far the gradient strays from the trend,
    eta = p / ((g - state.m) ** 2 + gamma * p + eps)  # against how far from its own average
    state.s = beta2 * state.s + (1 - beta2) * eta * p + eps  # the preconditioner
    m_hat = state.m / (1 - beta1**state.t)
    s_hat = state.s / (1 - beta2**state.t)

    gain = 0.0
    if state.age < 0:  # (re)start: the momentum is the trend
        state.v, state.delta, state.age = m_hat, 0.0, 0
    else:
        d = state.v - m_hat
        same = norm(d) <= 2e-15 * norm(m_hat)  # but for rounding
        k = 0.0 if same else (d @ state.v) / (d @ d)
        state.v = state.v - k * d  # of the line through v and m_hat, the point nearest to 0
        cosine = 1.0 if same else norm(state.v) / norm(m_hat)
        state.delta = beta2 * state.delta + (1 - beta2) * cosine  # how well the two agree
        state.age += 1
        if state.delta / (1 - beta2**state.age) < threshold:
            state.age = -1  # no common trend left: start anew at the next step
        else:
            gain = 10 ** (6 * state.delta - 3)  # the longer they agree, the longer the step

    return theta - lr * m_hat / (np.sqrt(s_hat) + eps) - lr * gain * state.v
