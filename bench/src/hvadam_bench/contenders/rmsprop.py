"""RMSProp: the gradient over the root of its mean square, whose bias is not corrected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build torch's RMSprop."""
    from torch.optim import RMSprop

    return RMSprop(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr, alpha, eps, momentum, decay = (
        options[name] for name in ("lr", "alpha", "eps", "momentum", "weight_decay")
    )
    theta = [np.array(p) for p in params]
    mean_square, velocity = ([np.zeros_like(p) for p in params] for _ in range(2))
    trace = []
    for step in grads:
        for i, gradient in enumerate(step):
            g = gradient + decay * theta[i]
            mean_square[i] = alpha * mean_square[i] + (1 - alpha) * g**2
            velocity[i] = momentum * velocity[i] + g / (np.sqrt(mean_square[i]) + eps)
            theta[i] = theta[i] - lr * velocity[i]
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="rmsprop",
    label="RMSprop",
    paper="Tieleman & Hinton, Neural Networks for Machine Learning, lecture 6e, 2012",
    source="torch.optim.RMSprop; its alpha of 0.99 is the AdaBelief study's, the lecture has 0.9",
    build=build,
    defaults={"lr": 1e-3, "alpha": 0.99, "eps": 1e-8, "momentum": 0.0, "weight_decay": 0.0},
    oracle=oracle,
    cases=[Case({"alpha": 0.9, "momentum": 0.9}), Case({"lr": 0.01, "weight_decay": 0.1})],
    bad=[
        BadCase({"lr": -1.0}, "Invalid learning rate"),
        BadCase({"alpha": -1.0}, "Invalid alpha"),
        BadCase({"eps": -1.0}, "Invalid epsilon"),
        BadCase({"weight_decay": -1.0}, "Invalid weight_decay"),
    ],
)
