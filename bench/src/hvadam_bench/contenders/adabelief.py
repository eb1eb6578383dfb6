"""AdaBelief: Adam that divides by the spread of gradients around their average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build our AdaBelief."""
    from hvadam_bench.contenders._implementations.adabelief import AdaBelief

    return AdaBelief(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    beta1, beta2 = options["betas"]
    coupled = options["weight_decay_mode"] == "coupled"
    rho_inf = 2 / (1 - beta2) - 1
    theta = [np.array(p) for p in params]
    first, spread = ([np.zeros_like(p) for p in params] for _ in range(2))
    trace = []
    for t, step in enumerate(grads, 1):
        rho = rho_inf - 2 * t * beta2**t / (1 - beta2**t)
        for i, gradient in enumerate(step):
            g = gradient + decay * theta[i] if coupled else gradient
            start = theta[i] if coupled else theta[i] - lr * decay * theta[i]
            first[i] = beta1 * first[i] + (1 - beta1) * g
            spread[i] = beta2 * spread[i] + (1 - beta2) * (g - first[i]) ** 2 + eps
            update = first[i] / (1 - beta1**t)
            if not options["rectify"]:
                update = update / (np.sqrt(spread[i] / (1 - beta2**t)) + eps)
            elif rho >= 5:
                rectified = np.sqrt(
                    ((rho - 4) * (rho - 2) * rho_inf) / ((rho_inf - 4) * (rho_inf - 2) * rho)
                )
                update = rectified * update * np.sqrt(1 - beta2**t) / (np.sqrt(spread[i]) + eps)
            theta[i] = start - lr * update
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="adabelief",
    label="AdaBelief",
    paper="arXiv:2010.07468",
    source="ours: adabelief-pytorch writes into p.grad and prints, pytorch_optimizer's fast path "
    "leaves out the first bias correction",
    build=build,
    defaults={
        "lr": 1e-3,
        "betas": (0.9, 0.999),
        "eps": 1e-8,  # as in the paper's image classifiers
        "weight_decay": 0.0,
        "weight_decay_mode": "coupled",
        "rectify": False,
    },
    oracle=oracle,
    cases=[
        Case({"betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
        Case({"eps": 1e-16, "weight_decay": 0.1, "weight_decay_mode": "decoupled"}),
        Case({"rectify": True}),
    ],
    bad=[
        BadCase({"lr": -1.0}, "AdaBelief: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (1.0, 0.999)}, r"AdaBelief: betas\[0\] must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"AdaBelief: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": 0.0}, "AdaBelief: eps must be > 0 and finite, got 0"),
        BadCase({"weight_decay": -1.0}, "AdaBelief: weight_decay must be >= 0"),
        BadCase(
            {"weight_decay_mode": "l2"}, "AdaBelief: weight_decay_mode must be one of 'coupled'"
        ),
        BadCase({"rectify": "yes"}, "AdaBelief: rectify must be one of True, False, got 'yes'"),
    ],
)
