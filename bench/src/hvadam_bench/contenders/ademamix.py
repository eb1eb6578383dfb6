"""AdEMAMix: Adam whose numerator adds a second, far slower average of the gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build our AdEMAMix."""
    from hvadam_bench.contenders._implementations.ademamix import AdEMAMix

    return AdEMAMix(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's Algorithm 1, with both schedulers."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    beta1, beta2, beta3 = options["betas"]
    theta = [np.array(p) for p in params]
    fast, slow, second = ([np.zeros_like(p) for p in params] for _ in range(3))
    trace = []
    for t, step in enumerate(grads, 1):
        done = min(1.0, t / options["horizon"]) if options["horizon"] else 1.0
        alpha = done * options["alpha"]
        if done < 1:
            ends = np.log(beta1), np.log(beta3)
            slow_beta = np.exp(ends[0] * ends[1] / ((1 - done) * ends[1] + done * ends[0]))
        else:
            slow_beta = beta3
        for i, g in enumerate(step):
            fast[i] = beta1 * fast[i] + (1 - beta1) * g
            slow[i] = slow_beta * slow[i] + (1 - slow_beta) * g
            second[i] = beta2 * second[i] + (1 - beta2) * g**2
            root = np.sqrt(second[i] / (1 - beta2**t)) + eps
            update = (fast[i] / (1 - beta1**t) + alpha * slow[i]) / root
            theta[i] = theta[i] - lr * (update + decay * theta[i])
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="ademamix",
    label="AdEMAMix",
    paper="arXiv:2409.03137",
    source="ours, after Algorithm 1: torch has none",
    build=build,
    defaults={
        **{"lr": 1e-3, "betas": (0.9, 0.999, 0.9999), "eps": 1e-8, "weight_decay": 0.0},
        **{"alpha": 5.0, "horizon": 0},
    },
    oracle=oracle,
    decay="decoupled",
    cases=[
        Case({"betas": (0.5, 0.9, 0.95), "eps": 1e-3, "horizon": 8}),
        Case({"lr": 0.01, "weight_decay": 1.0, "alpha": 2.0}),
        Case({"horizon": 100}),
    ],
    bad=[
        BadCase({"lr": -1.0}, "AdEMAMix: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (0.9, 0.999)}, "AdEMAMix: betas must be three numbers, got"),
        BadCase({"betas": (0.0, 0.9, 0.99)}, r"AdEMAMix: betas\[0\] must be in \(0, 1\), got 0"),
        BadCase({"betas": (0.9, 1.0, 0.99)}, r"AdEMAMix: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 0.999, 0.8)}, r"AdEMAMix: betas\[2\] must be at least betas\[0\]"),
        BadCase({"eps": -1.0}, "AdEMAMix: eps must be >= 0 and finite, got -1"),
        BadCase({"weight_decay": -1.0}, "AdEMAMix: weight_decay must be >= 0"),
        BadCase({"alpha": -1.0}, "AdEMAMix: alpha must be >= 0 and finite, got -1"),
        BadCase({"horizon": 1.5}, "AdEMAMix: horizon must be a whole number >= 0, got 1.5"),
    ],
)
