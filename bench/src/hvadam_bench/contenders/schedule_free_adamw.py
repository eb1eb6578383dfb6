"""Schedule-Free AdamW: gradients between a fast iterate and its average, which is evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, Case, OptimizerSpec, ours


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters in training, y, after each step."""
    return _sequences(params, grads, options)[0]


def evaluated(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the average that is evaluated, x, after each step."""
    return _sequences(params, grads, options)[1]


def _sequences(
    params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]
) -> tuple[list[Arrays], list[Arrays]]:
    """Return y and x after each step, by the paper's first listing, which keeps all three."""
    eps, decay = options["eps"], options["weight_decay"]
    beta1, beta2 = options["betas"]
    x, y, z = ([np.array(p) for p in params] for _ in range(3))
    second = [np.zeros_like(p) for p in params]
    squares = 0.0
    training, averaged = [], []
    for t, step in enumerate(grads, 1):
        rate = options["lr"]
        if options["warmup_steps"]:
            rate *= min(1, t / options["warmup_steps"])
        squares += rate**2
        for i, g in enumerate(step):
            second[i] = beta2 * second[i] + (1 - beta2) * g**2
            second_hat = second[i] / (1 - beta2**t)
            z[i] = z[i] - rate * g / (np.sqrt(second_hat) + eps) - rate * decay * y[i]
            x[i] = (1 - rate**2 / squares) * x[i] + rate**2 / squares * z[i]
            y[i] = (1 - beta1) * z[i] + beta1 * x[i]
        training.append([p.copy() for p in y])
        averaged.append([p.copy() for p in x])
    return training, averaged


SPEC = OptimizerSpec(
    name="schedule_free_adamw",
    label="Schedule-free",
    paper="arXiv:2405.15682",
    source="ours; in the authors' package an evaluation moves the last bits of the parameters",
    build=ours("schedule_free_adamw", "ScheduleFreeAdamW"),
    defaults={
        **{"lr": 2.5e-3, "betas": (0.9, 0.999), "eps": 1e-8},
        **{"weight_decay": 0.0, "warmup_steps": 0},
    },
    first_rate=3e-3,
    oracle=oracle,
    decay="decoupled",
    cases=[
        Case({"betas": (0.5, 0.9), "eps": 1e-3, "warmup_steps": 4}),
        Case({"lr": 0.01, "weight_decay": 1.0}),
    ],
    evaluation=lambda optimizer: optimizer.evaluation(),
    averages=True,
    evaluated=evaluated,
)
