"""Appendix B: how fast the hidden vector finds the trend, and in which noise.

The theorem: if m_t = v* + ζ_t with ζ_t ⟂ v* and ‖ζ_t‖ half-normal of scale σ, then
‖v_T‖ <= min_t ‖m_t‖ and E‖v_T - v*‖ <= E min_t ‖ζ_t‖ <= √(2π)·σ/T.

Three kinds of m_t are drawn. "independent" is what the proof uses. "average" and "unbiased average"
are what an optimizer has: m_t averages gradients v* + ξ_t, ξ_t as ζ_t above, without and with the
bias correction. Their ζ_t are correlated, and without the correction m_t is not v* + ζ_t at all.

Once v is nearer to v* than the noise is, one step maps ζ_v to its part orthogonal to ζ_t. With
directions uniform in the n = d-1 dimensions beside v*, E‖ζ_v‖ then shrinks by the factor
E|sin| = Γ(n/2)² / (Γ((n-1)/2)·Γ((n+1)/2)) per step: geometrically, where the theorem says 1/T.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from hvadam.core.hyperparams import Hyperparams
from hvadam_bench.studies.theory.result import Array, checkpoints, interval
from hvadam_bench.studies.theory.update import Runs, follow

DIMENSIONS = (2, 10, 100)
KINDS = ("independent", "average", "unbiased average")
SIGMA, BETA1 = 1.0, 0.9
FITTED = (10, 100)  # steps between which a power law is fitted
# Means under this are rounding: v* has length 1.
FLOOR = 1e-12


def study(runs: int, steps: int, advance: Callable[[float], None]) -> dict[str, Any]:
    """Measure every kind of noise in every dimension, versus the bound."""
    cases: list[dict[str, Any]] = []
    for dimension, kind in product(DIMENSIONS, KINDS):
        found = measure(kind, dimension, runs, checkpoints(steps))
        cases.append({"kind": kind, "dimension": dimension, "measured": found})
        advance(1 / len(DIMENSIONS) / len(KINDS))
    return {
        "runs": runs,
        "steps": steps,
        "sigma": SIGMA,
        "beta1": BETA1,
        "fitted": FITTED,
        "constant": math.sqrt(2 * math.pi) * SIGMA,
        "limit_of_minimum": math.sqrt(math.pi / 2) * SIGMA,
        "cases": cases,
    }


def measure(kind: str, dimension: int, runs: int, times: Array) -> dict[str, Any] | None:
    """Simulate one kind of noise, and set every number of the theorem against its bound."""
    distance, least_noise, broken = simulate(kind, dimension, runs, times)
    mean = distance.mean(0)
    if not np.isfinite(mean).all():
        return None
    bound = math.sqrt(2 * math.pi) * SIGMA / times
    late, window = times >= FITTED[0], (times >= FITTED[0]) & (times <= FITTED[1])
    exact = bool(mean[window].max() < FLOOR)
    return {
        "steps": times,
        # What is only rounding differs between machines.
        "distance": np.where(mean >= FLOOR, mean, 0.0),
        "least_noise": least_noise.mean(0),
        "bound": bound,
        "within_bound": bool((mean <= bound).all()),
        "worst_ratio": (mean / bound).max(),
        "norm_claims_broken": broken,
        "exact": exact,
        "slope": None if exact else interval(times, distance, window),
        "slope_of_minimum": interval(times, least_noise, late),
        "rate": None if exact else _geometric(times, mean),
        "rate_predicted": _predicted(dimension) if kind == "independent" else None,
    }


def simulate(kind: str, dimension: int, runs: int, times: Array) -> tuple[Array, Array, int]:
    """Return ‖v_T - v*‖ and min_t ‖ζ_t‖ as (runs, times), and how often a claim on norms fails.

    The claims are ‖v_t‖ <= ‖v_{t-1}‖ and ‖v_t‖ <= ‖m_t‖, up to rounding. Noise is orthogonal to v*,
    the first axis, uniform in direction and of half-normal length.
    """
    rng = np.random.default_rng([KINDS.index(kind), dimension])
    v_star, hyper = np.eye(dimension)[0], Hyperparams(restart_threshold=0.0)
    state = Runs(np.zeros((runs, dimension)))
    average = np.zeros((runs, dimension))
    least, norm = np.full((2, runs), math.inf)
    seen, broken = [], 0
    for t in range(1, int(times[-1]) + 1):
        zeta = rng.normal(size=(runs, dimension))
        zeta[:, 0] = 0.0
        length = abs(rng.normal(scale=SIGMA, size=(runs, 1)))
        m = v_star + zeta * (length / np.linalg.norm(zeta, axis=1, keepdims=True))
        if kind != "independent":
            average = BETA1 * average + (1 - BETA1) * m
            m = average / (1 - BETA1**t) if kind == "unbiased average" else average
        follow(state, m, hyper)
        before, norm = norm, np.linalg.norm(state.v, axis=1)
        allowed = np.minimum(before, np.linalg.norm(m, axis=1)) * (1 + 1e-9)
        broken += int((norm > allowed).sum())
        least = np.minimum(least, np.linalg.norm(m - v_star, axis=1))
        if t in times:
            seen.append((np.linalg.norm(state.v - v_star, axis=1), least))
    distances, minima = np.stack(seen, axis=-1)
    return distances, minima, broken


def _predicted(dimension: int) -> float | None:
    """Return -ln E|sin| of the angle between a fixed and a random direction in dimension - 1."""
    n = dimension - 1
    if n < 2:
        return None
    return math.lgamma((n - 1) / 2) + math.lgamma((n + 1) / 2) - 2 * math.lgamma(n / 2)


def _geometric(times: Array, mean: Array) -> float | None:
    """Fit r of mean ~ exp(-r·T) over the last half of what lies above rounding."""
    alive = times[mean > FLOOR]
    tail = (mean > FLOOR) & (times >= alive.max() / 2)
    return float(-np.polyfit(times[tail], np.log(mean[tail]), 1)[0]) if tail.sum() > 2 else None
