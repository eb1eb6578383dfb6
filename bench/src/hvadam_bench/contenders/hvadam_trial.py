"""HVAdam (trial): other steps along the hidden vector, to choose a better one by experiment.

The paper steps along v beside the adaptive step. Here v may join the numerator that √ŝ divides,
with a gain of its own, and the momentum may look ahead; `docs/decisions/0032-choosing-the-step.md`
says what is compared, and how.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, Case, OptimizerSpec, ours

# As documented in the implementation: where alignment tells of noise, and where of a trend.
NOISE, TREND = 0.5, 0.8


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step, over one vector of all parameters."""
    lr, eps, gamma, scale = (options[name] for name in ("lr", "eps", "gamma", "hidden_scale"))
    beta1, beta2 = options["betas"]
    theta = np.concatenate([np.asarray(p, dtype=np.float64).ravel() for p in params])
    m, s, v = (np.zeros_like(theta) for _ in range(3))
    age, delta, alignment = -1, 0.0, 0.0
    trace = []
    for t, step in enumerate(grads, 1):
        g = np.concatenate([np.asarray(x).ravel() for x in step])
        m = beta1 * m + (1 - beta1) * g
        if options["preconditioner"] == "adam":
            s = beta2 * s + (1 - beta2) * g**2
        elif options["preconditioner"] == "belief":
            s = beta2 * s + (1 - beta2) * (g - m) ** 2 + eps
        else:
            p = (g - v) ** 2
            s = beta2 * s + (1 - beta2) * p * p / ((g - m) ** 2 + gamma * p + eps) + eps
        m_hat = m / (1 - beta1**t)
        root = np.sqrt(s / (1 - beta2**t)) + eps

        weights = 1 / root if options["metric"] == "preconditioned" else np.ones_like(root)
        gain = 0.0
        if age < 0:
            v, age, delta = m_hat, 0, 0.0
        else:
            v = _nearest(v, m_hat, weights, options["projection"])
            age += 1
            delta = beta2 * delta + (1 - beta2) * _cosine(v, m_hat, weights)
            alignment = delta / (1 - beta2**age)
            if alignment < options["restart_threshold"]:
                age = -1
            else:
                gain = _gain(options["hidden_gain"], delta, alignment)

        ahead = beta1 * m_hat + (1 - beta1) * g / (1 - beta1**t)
        share = {"average": 0.0, "nesterov": 1.0}.get(options["momentum"], 1 - _gate(alignment))
        n = (1 - share) * m_hat + share * ahead
        theta = theta - lr * options["weight_decay"] * theta
        if options["hidden_path"] == "adaptive":
            theta = theta - lr * (n + scale * gain * v) / root
        else:
            theta = theta - lr * n / root - lr * scale * gain * v
        trace.append(_split(theta, params))
    return trace


def _nearest(v: np.ndarray, m_hat: np.ndarray, weights: np.ndarray, among: str) -> np.ndarray:
    """Return the point nearest to 0 on the line through two vectors, or between them."""
    towards = m_hat - v
    share = -np.sum(weights * towards * v) / np.sum(weights * towards**2)
    if among == "segment":
        share = np.clip(share, 0, 1)
    return v + share * towards


def _cosine(one: np.ndarray, other: np.ndarray, weights: np.ndarray) -> float:
    dot, a, b = (np.sum(weights * x) for x in (one * other, one**2, other**2))
    return float(dot / np.sqrt(a * b))


def _gain(kind: str, delta: float, alignment: float) -> float:
    if kind == "exponential":
        return 10 ** (6 * delta - 3)
    return 1.0 if kind == "constant" else _gate(alignment)


def _gate(alignment: float) -> float:
    """Return the smooth step from 0 at NOISE to 1 at TREND."""
    x = float(np.clip((alignment - NOISE) / (TREND - NOISE), 0, 1))
    return 3 * x**2 - 2 * x**3


def _split(flat: np.ndarray, shaped: Arrays) -> Arrays:
    ends = np.cumsum([np.size(p) for p in shaped])[:-1]
    parts = np.split(flat, ends)
    return [part.reshape(np.shape(p)).copy() for part, p in zip(parts, shaped, strict=True)]


SPEC = OptimizerSpec(
    name="hvadam_trial",
    label="HVAdam (trial)",
    paper="HVAdam: A Full-Dimension Adaptive Optimizer, AAAI 2025; the step is ours",
    source="ours: candidates for another step along the hidden vector",
    build=ours("hvadam_trial", "HVAdamTrial"),
    defaults={
        **{"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-12, "gamma": 0.5, "weight_decay": 0.0},
        **{"hidden_path": "adaptive", "hidden_scale": 1.0, "hidden_gain": "constant"},
        **{"momentum": "average", "projection": "segment", "metric": "plain"},
        **{"preconditioner": "hidden", "restart_threshold": 0.1},
    },
    oracle=oracle,
    decay="decoupled",
    elementwise=False,
    cases=[
        Case({"lr": 0.01, "weight_decay": 1.0, "momentum": "nesterov"}),
        Case({"hidden_path": "direct", "hidden_gain": "exponential", "projection": "line"}),
        Case({"betas": (0.5, 0.6), "hidden_gain": "gate", "momentum": "gated", "gamma": 0.1}),
        Case({"betas": (0.5, 0.6), "restart_threshold": 0.6, "hidden_scale": 0.5}),
        Case({"metric": "preconditioned", "preconditioner": "belief", "momentum": "gated"}),
        Case({"metric": "preconditioned", "projection": "line", "preconditioner": "adam"}),
        Case({"hidden_scale": 0.0, "preconditioner": "adam", "eps": 1e-8}),
    ],
)
