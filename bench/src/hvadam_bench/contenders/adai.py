"""Adai: SGD whose momentum, per coordinate, depends on the size of gradients there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, Case, OptimizerSpec, ours


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    beta0, beta2 = options["betas"]
    theta = [np.array(p) for p in params]
    first, second = ([np.zeros_like(p) for p in params] for _ in range(2))
    product = [np.ones_like(p) for p in params]
    trace = []
    for t, step in enumerate(grads, 1):
        decayed = [g + decay * p for g, p in zip(step, theta, strict=True)]
        second = [beta2 * v + (1 - beta2) * g**2 for v, g in zip(second, decayed, strict=True)]
        hats = [v / (1 - beta2**t) for v in second]
        mean = np.concatenate([v.ravel() for v in hats]).mean()  # over all parameters
        for i, g in enumerate(decayed):
            # Nothing but zero gradients so far: any inertia will do, the authors' code divides 0/0.
            ratio = hats[i] / mean if mean > 0 else np.zeros_like(g)
            beta1 = np.clip(1 - beta0 * ratio, 0, 1 - eps)
            product[i] = product[i] * beta1
            first[i] = beta1 * first[i] + (1 - beta1) * g
            theta[i] = theta[i] - lr * first[i] / (1 - product[i])
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="adai",
    label="Adai",
    paper="arXiv:2006.15815",
    source="ours, after the authors' code, which writes into p.grad and needs an older torch",
    build=ours("adai", "Adai"),
    defaults={"lr": 1.0, "betas": (0.1, 0.99), "eps": 1e-3, "weight_decay": 0.0},
    oracle=oracle,
    cases=[Case({"betas": (0.5, 0.9), "eps": 0.1}), Case({"lr": 0.1, "weight_decay": 0.1})],
    elementwise=False,  # the mean is over all parameters
)
