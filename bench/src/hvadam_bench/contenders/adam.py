"""Adam: each coordinate over the root of its mean square gradient; decay joins the gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build torch's Adam."""
    from torch.optim import Adam

    return Adam(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    beta1, beta2 = options["betas"]
    theta = [np.array(p) for p in params]
    first, second = ([np.zeros_like(p) for p in params] for _ in range(2))
    trace = []
    for t, step in enumerate(grads, 1):
        for i, gradient in enumerate(step):
            g = gradient + decay * theta[i]
            first[i] = beta1 * first[i] + (1 - beta1) * g
            second[i] = beta2 * second[i] + (1 - beta2) * g**2
            first_hat = first[i] / (1 - beta1**t)
            second_hat = second[i] / (1 - beta2**t)
            theta[i] = theta[i] - lr * first_hat / (np.sqrt(second_hat) + eps)
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="adam",
    label="Adam",
    paper="arXiv:1412.6980",
    source="torch.optim.Adam, which is the published algorithm",
    build=build,
    defaults={"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0},
    oracle=oracle,
    cases=[Case({"betas": (0.5, 0.9), "eps": 1e-3}), Case({"lr": 0.01, "weight_decay": 0.1})],
    bad=[
        BadCase({"lr": -1.0}, "Invalid learning rate"),
        BadCase({"betas": (1.0, 0.999)}, "Invalid beta parameter at index 0"),
        BadCase({"betas": (0.9, 1.0)}, "Invalid beta parameter at index 1"),
        BadCase({"eps": -1.0}, "Invalid epsilon"),
        BadCase({"weight_decay": -1.0}, "Invalid weight_decay"),
    ],
)
