"""Adam with a momentum that follows the zigzag of its gradients: candidates for an experiment.

The hidden vector splits the momentum into a trend and a zigzag, and each gradient is held against
both, as `hvadam.GradientMeter` does; `docs/decisions/0038-a-momentum-that-follows-the-zigzag.md`
says what is compared, and how.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Array, Arrays, Case, OptimizerSpec, ours, tensor_by_tensor

KEPT, THRESHOLD = 0.999, 0.1  # of the average alignment, and below which v restarts


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step, over all parameters at once or tensor by tensor."""
    if options["scope"] == "tensor":
        return tensor_by_tensor(_path)(params, grads, options)
    ends = np.cumsum([np.size(p) for p in params])[:-1]
    flat = [np.concatenate([np.ravel(x) for x in own]) for own in (params, *grads)]
    return [
        [x.reshape(np.shape(p)) for x, p in zip(np.split(theta, ends), params, strict=True)]
        for theta in _path(flat[0], flat[1:], options)
    ]


def _path(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield the parameters of one scope after each step."""
    (beta1, beta2), (low, high) = options["betas"], options["span"]
    lr, eps = options["lr"], options["eps"]
    m, s, v = (np.zeros_like(theta) for _ in range(3))
    weight, held, reader = 0.0, 0.0, _Reader(options["average"])
    for t, g in enumerate(grads, 1):
        if options["follows"] == "steps":
            share, along = min(1.0, t / options["horizon"]), 0.0
        else:
            v = reader.follow(v, m / weight if weight else m)
            zigzag = reader.read(g, v, m / weight if weight else m)
            held = max(zigzag - 1 / g.size, 0.0, options["hold"] * held)
            share, begins = (_ramp(held, *options[k]) for k in ("between", "hidden_between"))
            along = options["hidden_scale"] * begins
        moved = low + share * (high - low)
        beta, nu = (moved, 1.0) if options["moves"] == "beta1" else (beta1, moved)
        m = beta * m + (1 - beta) * g
        weight = beta * weight + 1 - beta
        if options["preconditioner"] == "adam":
            s = beta2 * s + (1 - beta2) * g**2
        else:
            p = (g - v) ** 2
            s = beta2 * s + (1 - beta2) * p**2 / ((g - m) ** 2 + options["gamma"] * p + eps) + eps
        n = nu * m / weight + (1 - nu) * g + along * v
        theta = theta - lr * options["weight_decay"] * theta
        theta = theta - lr * n / (np.sqrt(s / (1 - beta2**t)) + eps)
        yield theta


class _Reader:
    """The hidden vector's age and alignment, and the average zigzag."""

    def __init__(self, average: float) -> None:
        self.decay = 1 - 1 / average
        self.age, self.delta, self.total, self.readings = -1, 0.0, 0.0, 0

    def follow(self, v: Array, m_hat: Array) -> Array:
        """Return the point nearest to 0 on the line through v and m̂; at a start m̂ itself."""
        if self.age < 0:
            self.age, self.delta = (0 if np.any(m_hat) else -1), 0.0
            return m_hat
        towards = m_hat - v
        v = v - np.sum(towards * v) / np.sum(towards**2) * towards
        self.age += 1
        self.delta = KEPT * self.delta + (1 - KEPT) * _cosine(v, m_hat)
        if self.delta / (1 - KEPT**self.age) < THRESHOLD:
            self.age = -1
        return v

    def read(self, g: Array, v: Array, m_hat: Array) -> float:
        """Return the average share of a gradient that points against the zigzag m̂ - v."""
        if np.any(g) and np.any(v):
            z = m_hat - v
            share = max(0.0, -_cosine(g, z)) ** 2 if np.any(z) else 0.0
            self.total = self.decay * self.total + (1 - self.decay) * share
            self.readings += 1
        return self.total / (1 - self.decay**self.readings) if self.readings else 0.0


def _cosine(one: Array, other: Array) -> float:
    sizes = np.sqrt(np.sum(one**2) * np.sum(other**2))
    return float(np.sum(one * other) / sizes) if sizes else 0.0


def _ramp(x: float, begin: float, full: float) -> float:
    return float(np.clip((x - begin) / (full - begin), 0, 1))


SPEC = OptimizerSpec(
    name="zigzag",
    label="Zigzag",
    paper="ours; the hidden vector is that of HVAdam, AAAI 2025",
    source="ours: candidates for a momentum that follows the zigzag",
    build=ours("zigzag", "Zigzag"),
    defaults={
        **{"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "gamma": 0.5, "weight_decay": 0.0},
        **{"moves": "nu", "span": (0.5, 1.0), "follows": "zigzag", "horizon": 1000},
        **{"scope": "tensor", "between": (0.015, 0.06), "average": 20.0, "hold": 0.995},
        **{"hidden_scale": 0.5, "hidden_between": (0.12, 0.35), "preconditioner": "adam"},
    },
    oracle=oracle,
    decay="decoupled",
    elementwise=False,
    cases=[
        Case({"scope": "all", "span": (0.3, 1.0), "between": (0.0, 0.1), "weight_decay": 1.0}),
        Case({"moves": "beta1", "span": (0.5, 0.95), "hidden_between": (0.0, 0.05)}),
        Case(
            {
                "moves": "beta1",
                "scope": "all",
                "between": (0.0, 0.02),
                "hold": 0.0,
                "span": (0.5, 0.9),
            }
        ),
        Case({"follows": "steps", "moves": "beta1", "span": (0.5, 0.95), "horizon": 8}),
        Case({"scope": "all", "preconditioner": "hidden", "eps": 1e-12, "betas": (0.5, 0.9)}),
        Case({"span": (0.7, 0.7), "average": 3.0, "hidden_between": (0.0, 0.1), "hold": 0.5}),
    ],
    tolerance=1e-10,  # a cosine from a difference of squares has fewer digits
)
