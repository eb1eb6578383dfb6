"""Appendix D: the mean squared gradient norm on non-convex problems, versus the rate.

The update is `update.step` with α0·t^-k and α0·t^-2k, a preconditioner A_t = 1/root
that never rises, and no projection. The theorem needs α0 <= C_l/(L·C_r²), where C_l <= A_t <= C_r
and b_t <= C_r. For C_r not to be the 10³ of the usual gain, the gain here is the linear one, at
most 10/0.9; ε is large, for 1/(√ε + ε) bounds A_t. That rate is tiny, so a hundred times as much,
which the theorem does not cover, runs as well.

The problems meet the assumptions everywhere: losses between 0 and F, gradients and their
coordinates bounded by N, L known. All are stepped together: arrays are (problems, rates, exponents,
seeds, d).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hvadam.core.hyperparams import Hyperparams
from hvadam_bench.studies.theory.result import Array, checkpoints, curve, interval
from hvadam_bench.studies.theory.update import Runs, step

SEEDS, SAMPLES, BATCH, DIMENSION = 10, 32, 4, 12
EXPONENTS = (0.5, 0.6, 0.75)
RATES = {"allowed": 1.0, "hundredfold": 100.0}
HYPER = Hyperparams(lr=1.0, betas=(0.9, 0.99), eps=1e-2, gamma=0.5, hidden_gain="linear")
GAIN_MAX = 10 / 0.9


@dataclass(frozen=True)
class Constants:
    """What the theorem asks for, known before the first step."""

    lipschitz: float  # L, of the gradient of the mean
    steepest: float  # N, over every coordinate of every sample's gradient
    ceiling: float  # F; the infimum f* is at least 0
    least: float  # C_l
    most: float  # C_r

    @classmethod
    def of(cls, lipschitz: float, steepest: float, ceiling: float = 2.0) -> Constants:
        """Work out C_l and C_r: |g_i - v_i| <= (1+√d)·N bounds A_t from below, ε from above."""
        apart = (1 + math.sqrt(DIMENSION)) * steepest
        largest = apart**2 / HYPER.gamma + HYPER.eps / (1 - HYPER.betas[1])
        most = max(1 / (math.sqrt(HYPER.eps) + HYPER.eps), GAIN_MAX)
        return cls(lipschitz, steepest, ceiling, 1 / (math.sqrt(largest) + HYPER.eps), most)

    @property
    def rate(self) -> float:
        """Return the largest α0 that the theorem allows."""
        return self.least / (self.lipschitz * self.most**2)

    @property
    def trivial(self) -> float:
        """Return the bound d·N² that needs no theorem."""
        return DIMENSION * self.steepest**2


class Waves:
    """Plane waves 1 - cos(<a_j, θ> + φ_j) in random directions: many minima and saddles."""

    name, about = "waves", "mean of 32 plane waves 1 - cos(<a, θ> + φ) in 12 dimensions"

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.a = rng.uniform(-1, 1, size=(SAMPLES, DIMENSION))
        self.phase = rng.uniform(0, 2 * math.pi, size=SAMPLES)
        lipschitz = float(np.linalg.norm(self.a.T @ self.a, 2)) / SAMPLES
        self.constants = Constants.of(lipschitz, float(abs(self.a).max()))

    def gradients(self, theta: Array, weights: Array) -> tuple[Array, Array]:
        """Return the gradients of the mean, and of the sum with weights (..., samples)."""
        slope = np.sin(theta @ self.a.T + self.phase)
        return slope @ self.a / SAMPLES, (weights * slope) @ self.a


class Committee:
    """Three tanh neurons that vote, trained on a noisy teacher of the same kind.

    With output o = Σ tanh(<w_k, x>)/K and loss (o - y)²/2, |o|, |y| <= 1, the Hessian is at most
    ‖∇o‖² + |o - y|·‖∇²o‖ <= ‖x‖²/K·(1 + 2·4/(3√3)).
    """

    name, about = "committee", "three tanh neurons that vote, squared loss, 32 noisy examples"
    neurons = 3

    def __init__(self) -> None:
        rng = np.random.default_rng(2)
        self.x = rng.uniform(-1, 1, size=(SAMPLES, DIMENSION // self.neurons))
        teacher = rng.normal(scale=2.0, size=(self.neurons, self.x.shape[1]))
        clean = np.tanh(self.x @ teacher.T).mean(-1)
        self.y = np.clip(clean + rng.normal(scale=0.3, size=SAMPLES), -1, 1)
        curvature = (1 + 8 / (3 * math.sqrt(3))) / self.neurons
        lipschitz = curvature * float((self.x**2).sum(-1).mean())
        self.constants = Constants.of(lipschitz, 2 / self.neurons * float(abs(self.x).max()))

    def gradients(self, theta: Array, weights: Array) -> tuple[Array, Array]:
        """Return the gradients of the mean, and of the sum with weights (..., samples)."""
        w = theta.reshape(*theta.shape[:-1], self.neurons, -1)
        h = np.tanh(w @ self.x.T)  # (..., neurons, samples)
        error = h.mean(-2, keepdims=True) - self.y
        slope = error * (1 - h * h) / self.neurons
        full, weighted = slope @ self.x / SAMPLES, (weights[..., None, :] * slope) @ self.x
        return full.reshape(theta.shape), weighted.reshape(theta.shape)


def bound(t: Array | float, k: float, constants: Constants, *, corrected: bool) -> Array:
    """Return the right-hand side of the theorem after t steps, printed or corrected.

    As printed, with the undefined C_u and p read as C_r and k. Corrected: every summand of J gets
    the d that was dropped; H_t, which is (t^-k + β1·(t-1)^-k)/(1-β1)·A⁻¹B v in size, is bounded at
    its largest, t = 2, and with |v_i| <= √d·N; and where <A∇f, H> is negative, A is bounded by C_r
    and the rate α_{t-1} stays with its own step.
    """
    c, d, beta1 = constants, DIMENSION, HYPER.betas[0]
    t = np.asarray(t, dtype=np.float64)
    alpha0, n2 = c.rate, c.steepest**2
    ratio = c.most / c.least / (1 - beta1)
    log_or_power = np.log(t) if k == 0.5 else (t ** (1 - 2 * k) - 1) / (1 - 2 * k)
    j = (
        beta1**2 / (4 * c.lipschitz * (1 - beta1) ** 2)
        + alpha0 * c.most / (1 - beta1)
        + (beta1 / (1 - beta1) + 0.5) * c.lipschitz * (alpha0 * c.most) ** 2 * (1 + log_or_power)
    )
    lead = t ** (k - 1) / (alpha0 * c.least)
    if not corrected:
        rest = 3 * t**-k * d * ratio * n2 / (1 - k)
        return lead * (c.ceiling + j * n2 * (1 + ratio) ** 2) + rest
    largest = (2.0**-k + beta1) * ratio  # ‖H_t‖ / ‖v_t‖
    noise = d * j * n2 * (1 + math.sqrt(d) * largest) ** 2
    # Σ α_{t-1}·C_r·‖∇f‖·‖H_t‖ with ‖∇f‖, ‖v‖ <= √d·N; H_1, and α_0 := α_1, before the sum
    opposed = alpha0 * c.most * d * n2 * ratio * (1 + (1 + beta1) * (1 + log_or_power))
    return lead * (c.ceiling + noise + opposed)


def useful_from(k: float, constants: Constants, *, corrected: bool) -> float:
    """Find log10 of the T from which the bound says more than the trivial one, by bisection."""
    low, high = 0.0, 300.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        above = bound(10.0**middle, k, constants, corrected=corrected) > constants.trivial
        low, high = (middle, high) if above else (low, middle)
    return round(high, 2)


def study(rounds: int, advance: Callable[[float], None]) -> dict[str, Any]:
    """Measure every problem at every rate and exponent, versus both forms of the bound."""
    problems = (Waves(), Committee())
    times = checkpoints(rounds)
    means, extremes = run(problems, times, advance)
    return {
        "rounds": rounds,
        "seeds": SEEDS,
        "dimension": DIMENSION,
        "samples": SAMPLES,
        "batch": BATCH,
        "beta1": HYPER.betas[0],
        "beta2": HYPER.betas[1],
        "eps": HYPER.eps,
        "gamma": HYPER.gamma,
        "steps": times,
        "problems": [
            {
                "name": problem.name,
                "about": problem.about,
                **asdict(problem.constants),
                "extremes": extremes[i],
                "trivial": problem.constants.trivial,
                "cases": [
                    describe(times, means[:, i, j, n].T, rate, k, problem.constants)
                    for j, rate in enumerate(RATES)
                    for n, k in enumerate(EXPONENTS)
                ],
            }
            for i, problem in enumerate(problems)
        ],
    }


def run(
    problems: Sequence[Waves | Committee], times: Array, advance: Callable[[float], None]
) -> tuple[Array, Array]:
    """Run all problems, rates and exponents together.

    Returns:
        (1/T) Σ ‖∇f(θ_t)‖² as (checkpoints, problems, rates, exponents, seeds), and for each problem
        the extremes of A_t.
    """
    rng = np.random.default_rng(0)
    shape = (len(problems), len(RATES), len(EXPONENTS), SEEDS)
    start = rng.normal(size=(SEEDS, DIMENSION))  # the same at every rate
    runs = Runs(np.broadcast_to(start, (*shape, DIMENSION)))
    allowed = np.array([problem.constants.rate for problem in problems])
    alpha0 = (allowed[:, None] * np.array(list(RATES.values())))[..., None, None, None]
    k = np.array(EXPONENTS)[:, None, None]
    full, g = np.empty_like(runs.theta), np.empty_like(runs.theta)
    total, first = np.zeros(shape), runs.root
    means: dict[int, Array] = dict.fromkeys(times.tolist(), total)
    for t in range(1, int(times[-1]) + 1):
        weights = rng.multinomial(BATCH, [1 / SAMPLES] * SAMPLES, size=SEEDS) / BATCH
        for i, problem in enumerate(problems):
            full[i], g[i] = problem.gradients(runs.theta[i], weights)
        total += np.einsum("...i,...i", full, full)
        decay = alpha0 * t**-k
        step(runs, g, HYPER, adaptive_decay=decay, hidden_decay=decay * t**-k)
        first = runs.root if t == 1 else first  # A_t never rises: its extremes are at the ends
        if t in means:
            means[t] = total / t
        if t % 1000 == 0:
            advance(1000 / int(times[-1]))
    ends = [1 / runs.root.max((1, 2, 3, 4)), 1 / first.min((1, 2, 3, 4))]
    return np.stack(list(means.values())), np.stack(ends, axis=-1)


def describe(
    times: Array, means: Array, rate: str, k: float, constants: Constants
) -> dict[str, Any]:
    """Describe the means (seeds, checkpoints) of one rate and exponent, versus the bounds."""
    shown = curve(times, means, interval)

    def against(corrected: bool) -> dict[str, Any] | None:
        if shown is None or rate != "allowed":  # the theorem covers no other rate
            return None
        values = bound(times, k, constants, corrected=corrected)
        useful = useful_from(k, constants, corrected=corrected)
        holds = bool((shown["mean"] <= values).all())
        return {"values": values, "holds": holds, "useful_from": useful}

    return {
        "rate": rate,
        "alpha0": RATES[rate] * constants.rate,
        "k": k,
        "slope_of_rate": k - 1,
        "curve": shown,
        "printed": against(corrected=False),
        "corrected": against(corrected=True),
    }
