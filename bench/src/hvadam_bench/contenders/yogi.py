"""Yogi: Adam whose second moment moves by additive steps, so that it cannot fall fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build our Yogi."""
    from hvadam_bench.contenders._implementations.yogi import Yogi

    return Yogi(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    beta1, beta2 = options["betas"]
    theta = [np.array(p) for p in params]
    first, second = (
        [np.full_like(p, options["initial_accumulator"]) for p in params] for _ in range(2)
    )
    trace = []
    for t, step in enumerate(grads, 1):
        for i, gradient in enumerate(step):
            g = gradient + decay * theta[i]
            first[i] = beta1 * first[i] + (1 - beta1) * g
            second[i] = second[i] - (1 - beta2) * np.sign(second[i] - g**2) * g**2
            first_hat = first[i] / (1 - beta1**t)
            second_hat = second[i] / (1 - beta2**t)
            theta[i] = theta[i] - lr * first_hat / (np.sqrt(second_hat) + eps)
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="yogi",
    label="Yogi",
    paper="Zaheer et al., Adaptive Methods for Nonconvex Optimization, NeurIPS 2018",
    source="ours: torch has none, and the ports differ in how the moments start",
    build=build,
    defaults={
        "lr": 1e-2,
        "betas": (0.9, 0.999),
        "eps": 1e-3,
        "initial_accumulator": 1e-6,
        "weight_decay": 0.0,
    },
    oracle=oracle,
    cases=[
        Case({"betas": (0.5, 0.9), "eps": 1e-8}),
        Case({"initial_accumulator": 0.1, "weight_decay": 0.1}),
    ],
    bad=[
        BadCase({"lr": -1.0}, "Yogi: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (1.0, 0.999)}, r"Yogi: betas\[0\] must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"Yogi: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": 0.0}, "Yogi: eps must be > 0 and finite, got 0"),
        BadCase({"weight_decay": -1.0}, "Yogi: weight_decay must be >= 0"),
        BadCase({"initial_accumulator": -1.0}, "Yogi: initial_accumulator must be >= 0"),
    ],
)
