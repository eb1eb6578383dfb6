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
from typing import Any, ClassVar, Protocol

import numpy as np

from hvadam.core.hyperparams import Hyperparams
from hvadam_bench.studies.theory.fits import Array, checkpoints, interval, power
from hvadam_bench.studies.theory.update import Runs, step

SEEDS, SAMPLES, BATCH, DIMENSION = 10, 32, 4, 12
EXPONENTS = (0.5, 0.6, 0.75)
RATES = {"allowed": 1.0, "hundredfold": 100.0}
HYPER = Hyperparams(lr=1.0, betas=(0.9, 0.99), eps=1e-2, gamma=0.5, hidden_gain="linear")
GAIN_MAX = 10 / 0.9


class Problem(Protocol):
    """A mean over samples of losses in [0, ceiling]."""

    name: ClassVar[str]
    about: ClassVar[str]
    ceiling: ClassVar[float]  # F; the infimum f* is at least 0
    lipschitz: float  # L, of the gradient of the mean
    steepest: float  # N, over every coordinate of every sample's gradient

    def __init__(self) -> None: ...

    def gradients(self, theta: Array, weights: Array) -> tuple[Array, Array]:
        """Return the gradients of the mean, and of the sum with weights (..., samples)."""
        ...


class Waves(Problem):
    """Plane waves 1 - cos(<a_j, θ> + φ_j) in random directions: many minima and saddles."""

    name: ClassVar[str] = "waves"
    about: ClassVar[str] = "mean of 32 plane waves 1 - cos(<a, θ> + φ) in 12 dimensions"
    ceiling: ClassVar[float] = 2.0

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.a = rng.uniform(-1, 1, size=(SAMPLES, DIMENSION))
        self.phase = rng.uniform(0, 2 * math.pi, size=SAMPLES)
        self.lipschitz = float(np.linalg.norm(self.a.T @ self.a, 2)) / SAMPLES
        self.steepest = float(abs(self.a).max())

    def gradients(self, theta: Array, weights: Array) -> tuple[Array, Array]:
        slope = np.sin(theta @ self.a.T + self.phase)
        return slope @ self.a / SAMPLES, (weights * slope) @ self.a


class Committee(Problem):
    """Three tanh neurons that vote, trained on a noisy teacher of the same kind.

    With output o = Σ tanh(<w_k, x>)/K and loss (o - y)²/2, |o|, |y| <= 1, the Hessian is at most
    ‖∇o‖² + |o - y|·‖∇²o‖ <= ‖x‖²/K·(1 + 2·4/(3√3)).
    """

    name: ClassVar[str] = "committee"
    about: ClassVar[str] = "three tanh neurons that vote, squared loss, 32 noisy examples"
    ceiling: ClassVar[float] = 2.0
    neurons: ClassVar[int] = 3

    def __init__(self) -> None:
        rng = np.random.default_rng(2)
        self.x = rng.uniform(-1, 1, size=(SAMPLES, DIMENSION // self.neurons))
        teacher = rng.normal(scale=2.0, size=(self.neurons, self.x.shape[1]))
        clean = np.tanh(self.x @ teacher.T).mean(-1)
        self.y = np.clip(clean + rng.normal(scale=0.3, size=SAMPLES), -1, 1)
        curvature = (1 + 8 / (3 * math.sqrt(3))) / self.neurons
        self.lipschitz = curvature * float((self.x**2).sum(-1).mean())
        self.steepest = 2 / self.neurons * float(abs(self.x).max())

    def gradients(self, theta: Array, weights: Array) -> tuple[Array, Array]:
        w = theta.reshape(*theta.shape[:-1], self.neurons, -1)
        h = np.tanh(w @ self.x.T)  # (..., neurons, samples)
        error = h.mean(-2, keepdims=True) - self.y
        slope = error * (1 - h * h) / self.neurons
        full, weighted = slope @ self.x / SAMPLES, (weights[..., None, :] * slope) @ self.x
        return full.reshape(theta.shape), weighted.reshape(theta.shape)


PROBLEMS: tuple[type[Problem], ...] = (Waves, Committee)


@dataclass(frozen=True)
class Constants:
    """What the theorem asks for, known before the first step."""

    lipschitz: float  # L
    steepest: float  # N
    ceiling: float  # F - f*
    least: float  # C_l
    most: float  # C_r

    @classmethod
    def of(cls, problem: Problem) -> Constants:
        """Work out the constants of a problem.

        |g_i - v_i| <= (1+√d)·N bounds s, and with it A from below; ε bounds A from above.
        """
        apart = (1 + math.sqrt(DIMENSION)) * problem.steepest
        largest = apart**2 / HYPER.gamma + HYPER.eps / (1 - HYPER.betas[1])
        least = 1 / (math.sqrt(largest) + HYPER.eps)
        most = max(1 / (math.sqrt(HYPER.eps) + HYPER.eps), GAIN_MAX)
        return cls(problem.lipschitz, problem.steepest, problem.ceiling, least, most)

    @property
    def rate(self) -> float:
        """Return the largest α0 that the theorem allows."""
        return self.least / (self.lipschitz * self.most**2)


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


def study(
    rounds: int, seeds: int = SEEDS, advance: Callable[[float], None] = lambda share: None
) -> dict[str, Any]:
    """Measure every problem at every rate and exponent, and return what `Nonconvex` has."""
    problems = [problem() for problem in PROBLEMS]
    times = checkpoints(rounds)
    means, extremes = run(problems, times, seeds, advance)
    return {
        "rounds": rounds,
        "seeds": seeds,
        "dimension": DIMENSION,
        "samples": SAMPLES,
        "batch": BATCH,
        "beta1": HYPER.betas[0],
        "beta2": HYPER.betas[1],
        "eps": HYPER.eps,
        "gamma": HYPER.gamma,
        "steps": times,
        "problems": [
            describe(problem, times, means[:, i], extremes[i]) for i, problem in enumerate(problems)
        ],
    }


def run(
    problems: Sequence[Problem],
    times: Array,
    seeds: int,
    advance: Callable[[float], None] = lambda share: None,
) -> tuple[Array, Array]:
    """Run all problems, rates and exponents together.

    Returns:
        (1/T) Σ ‖∇f(θ_t)‖² as (checkpoints, problems, rates, exponents, seeds), and for each problem
        the extremes of A_t.
    """
    rng = np.random.default_rng(0)
    shape = (len(problems), len(RATES), len(EXPONENTS), seeds)
    start = rng.normal(size=(seeds, DIMENSION))  # the same at every rate
    runs = Runs(np.broadcast_to(start, (*shape, DIMENSION)))
    allowed = np.array([Constants.of(problem).rate for problem in problems])
    alpha0 = (allowed[:, None] * np.array(list(RATES.values())))[..., None, None, None]
    k = np.array(EXPONENTS)[:, None, None]
    full, g = np.empty_like(runs.theta), np.empty_like(runs.theta)
    total, first = np.zeros(shape), runs.root
    means: list[Array] = []
    wanted = set(times.tolist())
    for t in range(1, int(times[-1]) + 1):
        weights = rng.multinomial(BATCH, [1 / SAMPLES] * SAMPLES, size=seeds) / BATCH
        for i, problem in enumerate(problems):
            full[i], g[i] = problem.gradients(runs.theta[i], weights)
        total += np.einsum("...i,...i", full, full)
        decay = alpha0 * t**-k
        step(runs, g, HYPER, adaptive_decay=decay, hidden_decay=decay * t**-k)
        first = runs.root if t == 1 else first  # A_t never rises: its extremes are at the ends
        if t in wanted:
            means.append(total / t)
        if t % 1000 == 0:
            advance(1000 / times[-1])
    axes = (1, 2, 3, 4)
    return np.stack(means), np.stack([1 / runs.root.max(axes), 1 / first.min(axes)], axis=-1)


def describe(problem: Problem, times: Array, means: Array, extremes: Array) -> dict[str, Any]:
    """Describe one problem: its constants, and every run versus the bounds."""
    constants = Constants.of(problem)
    return {
        "name": problem.name,
        "about": problem.about,
        **asdict(constants),
        "extremes": extremes,
        "trivial": DIMENSION * constants.steepest**2,
        "cases": [
            _case(times, means[:, i, j].T, rate, k, constants)
            for i, rate in enumerate(RATES)
            for j, k in enumerate(EXPONENTS)
        ],
    }


def _case(times: Array, means: Array, rate: str, k: float, constants: Constants) -> dict[str, Any]:
    """Describe means (seeds, checkpoints): the curve, its slope in the last decade, the bounds."""
    finite = bool(np.isfinite(means).all())
    mean, last = means.mean(0), times >= times[-1] / 10

    def against(corrected: bool) -> dict[str, Any] | None:
        if not finite or rate != "allowed":  # the theorem covers no other rate
            return None
        values = bound(times, k, constants, corrected=corrected)
        useful = useful_from(k, constants, corrected=corrected)
        return {"values": values, "holds": bool((mean <= values).all()), "useful_from": useful}

    slope = interval(means, lambda x: power(times, x, last))
    curve = {"mean": mean, "low": means.min(0), "high": means.max(0), "slope": slope}
    return {
        "rate": rate,
        "alpha0": RATES[rate] * constants.rate,
        "k": k,
        "slope_of_rate": k - 1,
        "curve": curve if finite else None,
        "printed": against(corrected=False),
        "corrected": against(corrected=True),
    }


def useful_from(k: float, constants: Constants, *, corrected: bool) -> float:
    """Find log10 of the T from which the bound says more than ‖∇f‖² <= d·N², by bisection."""
    trivial = DIMENSION * constants.steepest**2
    low, high = 0.0, 300.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        above = float(bound(10.0**middle, k, constants, corrected=corrected)) > trivial
        low, high = (middle, high) if above else (low, middle)
    return round(high, 2)
