"""Lion: the sign of an interpolated average, with decoupled decay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build our Lion."""
    from hvadam_bench.contenders._implementations.lion import Lion

    return Lion(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr, decay = options["lr"], options["weight_decay"]
    beta1, beta2 = options["betas"]
    theta = [np.array(p) for p in params]
    m = [np.zeros_like(p) for p in params]
    trace = []
    for step in grads:
        for i, g in enumerate(step):
            update = np.sign(beta1 * m[i] + (1 - beta1) * g)
            theta[i] = theta[i] - lr * (update + decay * theta[i])
            m[i] = beta2 * m[i] + (1 - beta2) * g
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="lion",
    label="Lion",
    paper="arXiv:2302.06675",
    source="ours; torch has none",
    build=build,
    defaults={"lr": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0.0},
    oracle=oracle,
    decay="decoupled",
    cases=[Case({"betas": (0.5, 0.9)}), Case({"lr": 0.01, "weight_decay": 1.0})],
    bad=[
        BadCase({"lr": -1.0}, "Lion: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (1.0, 0.99)}, r"Lion: betas\[0\] must be in \[0, 1\), got 1"),
        BadCase({"betas": 0.9}, "Lion: betas must be a pair of numbers, got 0.9"),
        BadCase({"weight_decay": -1.0}, "Lion: weight_decay must be >= 0"),
    ],
)
