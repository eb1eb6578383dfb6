"""Padam: AMSGrad with its denominator raised to a power, between SGD and Adam."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, ours, tensor_by_tensor


@tensor_by_tensor
def oracle(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield a tensor after each step of the paper's update."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    beta1, beta2 = options["betas"]
    first, second, largest = (np.zeros_like(theta) for _ in range(3))
    for t, gradient in enumerate(grads, 1):
        alpha = lr * np.sqrt(1 - beta2**t) / (1 - beta1**t)
        g = gradient + decay * theta
        first = beta1 * first + (1 - beta1) * g
        second = beta2 * second + (1 - beta2) * g**2
        largest = np.maximum(largest, second)
        denominator = (np.sqrt(largest) + eps) ** (2 * options["partial"])
        theta = theta - alpha * first / denominator
        yield theta


SPEC = OptimizerSpec(
    name="padam",
    label="Padam",
    paper="arXiv:1806.06763",
    source="ours, after the authors' code, which no longer runs on today's torch",
    build=ours("padam", "Padam"),
    defaults={
        "lr": 0.1,
        "betas": (0.9, 0.999),
        "eps": 1e-8,
        "partial": 0.125,
        "weight_decay": 0.0,
    },
    oracle=oracle,
    cases=[
        Case({"partial": 0.5, "lr": 1e-3}),  # AMSGrad
        Case({"partial": 0.0}),  # SGD with momentum
        Case({"betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ],
)
