"""AdaBound: Adam whose rates are clamped between bounds that close in on those of SGD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build our AdaBound."""
    from hvadam_bench.contenders._implementations.adabound import AdaBound

    return AdaBound(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    final_lr, gamma = options["final_lr"], options["gamma"]  # lr is constant here: no rescaling
    beta1, beta2 = options["betas"]
    theta = [np.array(p) for p in params]
    first, second = ([np.zeros_like(p) for p in params] for _ in range(2))
    trace = []
    for t, step in enumerate(grads, 1):
        lower = final_lr * (1 - 1 / (gamma * t + 1))
        upper = final_lr * (1 + 1 / (gamma * t))
        alpha = lr * np.sqrt(1 - beta2**t) / (1 - beta1**t)
        for i, gradient in enumerate(step):
            g = gradient + decay * theta[i]
            first[i] = beta1 * first[i] + (1 - beta1) * g
            second[i] = beta2 * second[i] + (1 - beta2) * g**2
            rate = np.clip(alpha / (np.sqrt(second[i]) + eps), lower, upper)
            theta[i] = theta[i] - rate * first[i]
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="adabound",
    label="AdaBound",
    paper="arXiv:1902.09843",
    source="ours, after the authors' code, whose bounds lose their base rates when pickled",
    build=build,
    defaults={
        "lr": 1e-3,
        "betas": (0.9, 0.999),
        "final_lr": 0.1,
        "gamma": 1e-3,
        "eps": 1e-8,
        "weight_decay": 0.0,
    },
    oracle=oracle,
    cases=[
        Case({"gamma": 0.5, "final_lr": 0.01}),  # both bounds bite
        Case({"betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ],
    bad=[
        BadCase({"lr": -1.0}, "AdaBound: lr must be > 0 and finite, got -1"),
        BadCase({"betas": (1.0, 0.999)}, r"AdaBound: betas\[0\] must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"AdaBound: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": 0.0}, "AdaBound: eps must be > 0 and finite, got 0"),
        BadCase({"weight_decay": -1.0}, "AdaBound: weight_decay must be >= 0"),
        BadCase({"final_lr": -1.0}, "AdaBound: final_lr must be >= 0"),
        BadCase({"gamma": 0.0}, "AdaBound: gamma must be > 0"),
    ],
)
