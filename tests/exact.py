"""HVAdam in sixty digits, to tell whose rounding it is where two implementations differ.

Runs are free, not teacher-forced, on gradients that are given: what a rounding becomes in later
steps is part of what is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext

import numpy as np

B1, B2, LR, EPS, GAMMA, THRESHOLD = 0.99, 0.0, 1e-2, 1e-12, 0.5, 0.1
SHAPES = ((40, 3), (1,))


@dataclass
class Taken:
    """A step of a run: the update, and what it was made of."""

    update: np.ndarray
    v_before: np.ndarray
    v: np.ndarray
    m: np.ndarray
    m_hat: np.ndarray
    s: np.ndarray
    gain: float


def gradients(seed: int, steps: int) -> list[np.ndarray]:
    """Return gradients of 1e4 with a trend and a thousandth of noise, all parameters in one."""
    random = np.random.default_rng(seed)
    trend = random.standard_normal(121)
    return [1e4 * (trend + 1e-3 * random.standard_normal(121)) for _ in range(steps)]


def run(grads: Sequence[np.ndarray]) -> list[Taken]:
    """Return the steps with b1 .99, b2 0 and the linear gain, rounded only at the end."""
    with localcontext(prec=60):
        b1, eps, gamma = Decimal(B1), Decimal(EPS), Decimal(GAMMA)
        m = v = [Decimal(0)] * len(grads[0])
        started = False
        taken: list[Taken] = []
        for t, given in enumerate(grads, start=1):
            g = [Decimal(float(x)) for x in given]
            m = [b1 * a + (1 - b1) * x for a, x in zip(m, g, strict=True)]
            m_hat = [a / (1 - b1**t) for a in m]
            p = [(x - a) ** 2 for x, a in zip(g, v, strict=True)]
            q = [(x - a) ** 2 for x, a in zip(g, m, strict=True)]
            s = [x * x / (y + gamma * x + eps) + eps for x, y in zip(p, q, strict=True)]
            before, gain = v, Decimal(0)
            if started:
                d = [a - b for a, b in zip(v, m_hat, strict=True)]
                k = _dot(d, v) / _dot(d, d)
                v = [a - k * b for a, b in zip(v, d, strict=True)]
                cosine = (_dot(v, v) / _dot(m_hat, m_hat)).sqrt()
                started = cosine >= Decimal(THRESHOLD)
                gain = cosine / Decimal("0.9") * 10 if started else gain
            else:
                v, started = m_hat, True
            update = [
                -Decimal(LR) * (a / (b.sqrt() + eps) + gain * c)
                for a, b, c in zip(m_hat, s, v, strict=True)
            ]
            vectors = (update, before, v, m, m_hat, s)
            taken.append(Taken(*(np.array(x, np.float64) for x in vectors), gain=float(gain)))
    return taken


def allowed(step: Taken, g: np.ndarray, v_error: float) -> np.ndarray:
    """Return how far an update in float64 may be off, if v is off by so much before and after.

    Without an average (b2 = 0) s follows p = (g - v)² alone, and p² / (q + γp) is as much in doubt
    as its factors: √s by 2 δ/|g - v| + δ/|g - m| of itself, for a doubt of δ in each difference. An
    element whose gradient happens to meet v takes a long step in which most digits are rounding.
    """
    rounding = 32 * np.finfo(np.float64).eps
    doubt = v_error + rounding * (abs(g) + abs(step.m) + abs(step.v_before))
    relative = 2 * doubt / abs(g - step.v_before) + doubt / abs(g - step.m) + rounding
    adaptive = abs(step.m_hat) / np.sqrt(step.s) * relative
    length = np.linalg.norm(step.m_hat)
    along = step.gain * (v_error + (rounding + v_error / length) * abs(step.v))
    return 1.5 * LR * (adaptive + along)  # half as much again for what is not of first order


def _dot(x: Sequence[Decimal], y: Sequence[Decimal]) -> Decimal:
    return sum((a * b for a, b in zip(x, y, strict=True)), Decimal(0))
