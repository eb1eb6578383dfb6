"""SGD with heavy-ball momentum: v ← μv + g, θ ← θ - αv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build torch's SGD."""
    from torch.optim import SGD

    return SGD(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr, momentum, decay = (options[name] for name in ("lr", "momentum", "weight_decay"))
    theta = [np.array(p) for p in params]
    velocity = [np.zeros_like(p) for p in params]
    trace = []
    for step in grads:
        for i, gradient in enumerate(step):
            g = gradient + decay * theta[i]
            velocity[i] = momentum * velocity[i] + g
            theta[i] = theta[i] - lr * velocity[i]
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="sgd",
    label="SGD",
    paper="Polyak, 1964, doi:10.1016/0041-5553(64)90137-5",
    source="torch.optim.SGD, which is heavy-ball as long as dampening is 0",
    build=build,
    defaults={"lr": 0.1, "momentum": 0.9, "weight_decay": 0.0},
    oracle=oracle,
    cases=[Case({"momentum": 0.0}), Case({"lr": 0.01, "weight_decay": 0.1})],
    bad=[
        BadCase({"lr": -1.0}, "Invalid learning rate"),
        BadCase({"momentum": -0.1}, "Invalid momentum"),
        BadCase({"weight_decay": -1.0}, "Invalid weight_decay"),
    ],
)
