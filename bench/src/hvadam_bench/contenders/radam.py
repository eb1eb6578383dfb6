"""RAdam: Adam that steps along the plain average until its second moment can be trusted.

The paper's listing adapts once ρ_t > 4, its authors' code once ρ_t ≥ 5, and torch once ρ_t > 5. As
ρ_t is a little less than t, the listing begins at the fifth step and the other two at the sixth, at
any β2 near 1. We take the authors' threshold, and their decay, which is apart from the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, builder, tensor_by_tensor


@tensor_by_tensor
def oracle(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield a tensor after each step of the paper's update."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    beta1, beta2 = options["betas"]
    rho_inf = 2 / (1 - beta2) - 1
    first, second = (np.zeros_like(theta) for _ in range(2))
    for t, g in enumerate(grads, 1):
        rho = rho_inf - 2 * t * beta2**t / (1 - beta2**t)
        first = beta1 * first + (1 - beta1) * g
        second = beta2 * second + (1 - beta2) * g**2
        update = first / (1 - beta1**t)
        if rho >= 5:
            adaptive = np.sqrt(1 - beta2**t) / (np.sqrt(second) + eps)
            rectified = np.sqrt(
                ((rho - 4) * (rho - 2) * rho_inf) / ((rho_inf - 4) * (rho_inf - 2) * rho)
            )
            update = rectified * adaptive * update
        theta = theta - lr * decay * theta - lr * update
        yield theta


SPEC = OptimizerSpec(
    name="radam",
    label="RAdam",
    paper="arXiv:1908.03265",
    source="torch.optim.RAdam, which is the authors' code: it adapts one step later than the paper",
    build=builder("torch.optim", "RAdam", decoupled_weight_decay=True),
    defaults={"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0},
    oracle=oracle,
    decay="decoupled",
    cases=[Case({"betas": (0.5, 0.9), "eps": 1e-3}), Case({"lr": 0.01, "weight_decay": 1.0})],
)
