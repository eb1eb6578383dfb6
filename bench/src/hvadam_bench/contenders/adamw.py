"""AdamW: Adam with the decay taken off the parameters, apart from the gradient."""

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
    first, second = (np.zeros_like(theta) for _ in range(2))
    for t, g in enumerate(grads, 1):
        first = beta1 * first + (1 - beta1) * g
        second = beta2 * second + (1 - beta2) * g**2
        first_hat = first / (1 - beta1**t)
        second_hat = second / (1 - beta2**t)
        # the paper's η_t λ θ, with the learning rate in the schedule, as everyone writes it
        theta = theta - lr * (first_hat / (np.sqrt(second_hat) + eps) + decay * theta)
        yield theta


SPEC = OptimizerSpec(
    name="adamw",
    label="AdamW",
    paper="arXiv:1711.05101",
    source="torch.optim.AdamW, which is the published algorithm with lr in the decay's schedule",
    build=builder("torch.optim", "AdamW"),
    defaults={"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 1e-2},
    oracle=oracle,
    decay="decoupled",
    cases=[Case({"betas": (0.5, 0.9), "eps": 1e-3}), Case({"lr": 0.01, "weight_decay": 1.0})],
)
