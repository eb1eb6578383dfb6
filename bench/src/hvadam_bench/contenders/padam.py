"""Padam: AMSGrad with its denominator raised to a power, between SGD and Adam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build our Padam."""
    from hvadam_bench.contenders._implementations.padam import Padam

    return Padam(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    beta1, beta2 = options["betas"]
    theta = [np.array(p) for p in params]
    first, second, largest = ([np.zeros_like(p) for p in params] for _ in range(3))
    trace = []
    for t, step in enumerate(grads, 1):
        alpha = lr * np.sqrt(1 - beta2**t) / (1 - beta1**t)
        for i, gradient in enumerate(step):
            g = gradient + decay * theta[i]
            first[i] = beta1 * first[i] + (1 - beta1) * g
            second[i] = beta2 * second[i] + (1 - beta2) * g**2
            largest[i] = np.maximum(largest[i], second[i])
            denominator = (np.sqrt(largest[i]) + eps) ** (2 * options["partial"])
            theta[i] = theta[i] - alpha * first[i] / denominator
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="padam",
    label="Padam",
    paper="arXiv:1806.06763",
    source="ours, after the authors' code, which no longer runs on today's torch",
    build=build,
    defaults={
        "lr": 0.1,
        "betas": (0.9, 0.999),
        "eps": 1e-8,
        "partial": 0.125,
        "weight_decay": 0.0,
    },
    oracle=oracle,
    cases=[
        Case({"partial": 0.5, "lr": 1e-3}),  # AMSGrad
        Case({"partial": 0.0}),  # SGD with momentum
        Case({"betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ],
    bad=[
        BadCase({"lr": -1.0}, "Padam: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (1.0, 0.999)}, r"Padam: betas\[0\] must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"Padam: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": 0.0}, "Padam: eps must be > 0 and finite, got 0"),
        BadCase({"weight_decay": -1.0}, "Padam: weight_decay must be >= 0"),
        BadCase({"partial": 0.6}, r"Padam: partial must be in \[0, 0.5\], got 0.6"),
    ],
)
