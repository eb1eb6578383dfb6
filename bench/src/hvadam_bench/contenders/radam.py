"""RAdam: Adam that steps along the plain average until its second moment can be trusted.

The paper's listing adapts once ρ_t > 4, its authors' code once ρ_t ≥ 5, and torch once ρ_t > 5. As
ρ_t is a little less than t, the listing begins at the fifth step and the other two at the sixth, at
any β2 near 1. We take the authors' threshold, and their decay, which is apart from the gradient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build torch's RAdam."""
    from torch.optim import RAdam

    return RAdam(groups, decoupled_weight_decay=True, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    beta1, beta2 = options["betas"]
    rho_inf = 2 / (1 - beta2) - 1
    theta = [np.array(p) for p in params]
    first, second = ([np.zeros_like(p) for p in params] for _ in range(2))
    trace = []
    for t, step in enumerate(grads, 1):
        rho = rho_inf - 2 * t * beta2**t / (1 - beta2**t)
        for i, g in enumerate(step):
            first[i] = beta1 * first[i] + (1 - beta1) * g
            second[i] = beta2 * second[i] + (1 - beta2) * g**2
            update = first[i] / (1 - beta1**t)
            if rho >= 5:
                adaptive = np.sqrt(1 - beta2**t) / (np.sqrt(second[i]) + eps)
                rectified = np.sqrt(
                    ((rho - 4) * (rho - 2) * rho_inf) / ((rho_inf - 4) * (rho_inf - 2) * rho)
                )
                update = rectified * adaptive * update
            theta[i] = theta[i] - lr * decay * theta[i] - lr * update
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="radam",
    label="RAdam",
    paper="arXiv:1908.03265",
    source="torch.optim.RAdam, which is the authors' code: it adapts one step later than the paper",
    build=build,
    defaults={"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0},
    oracle=oracle,
    decay="decoupled",
    cases=[Case({"betas": (0.5, 0.9), "eps": 1e-3}), Case({"lr": 0.01, "weight_decay": 1.0})],
    bad=[
        BadCase({"lr": -1.0}, "Invalid learning rate"),
        BadCase({"betas": (1.0, 0.999)}, "Invalid beta parameter at index 0"),
        BadCase({"betas": (0.9, 1.0)}, "Invalid beta parameter at index 1"),
        BadCase({"eps": -1.0}, "Invalid epsilon"),
        BadCase({"weight_decay": -1.0}, "Invalid weight_decay"),
    ],
)
