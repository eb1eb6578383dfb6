"""Padam: AMSGrad with its denominator raised to a power, between SGD and Adam.

With Adam's m and v, and v̄ the largest v so far, θ ← θ - lr·c·m / (√v̄ + ε)^(2·partial), where
c = √(1-β₂^t) / (1-β₁^t). "partial" is half the power: 1/2 is AMSGrad, 0 is SGD with momentum. It
differs from the paper's Algorithm 1 as the authors' code does: ε inside the power, and Adam's
correction of the bias.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hvadam_bench.contenders._options import between
from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, stepping, tensor_by_tensor

STATE = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")


def update(p: Any, g: Any, state: Any, group: Any, lr: float) -> None:
    """Take one step of a tensor."""
    beta1, beta2 = group["betas"]
    m, v, largest = (state[name] for name in STATE)
    m.mul_(beta1).add_(g, alpha=1 - beta1)
    v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    largest.copy_(largest.maximum(v))
    denominator = largest.sqrt().add_(group["eps"]).pow_(2 * group["partial"])
    t = state["step"]
    p.addcdiv_(m, denominator, value=-lr * math.sqrt(1 - beta2**t) / (1 - beta1**t))


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
    build=stepping("Padam", update, *STATE, partial=partial(between, low=0, high=0.5)),
    defaults={
        **{"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8, "partial": 0.125},
        "weight_decay": 0.0,
    },
    oracle=oracle,
    cases=[
        Case({"partial": 0.5, "lr": 1e-3}),  # AMSGrad
        Case({"partial": 0.0}),  # SGD with momentum
        Case({"betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ],
)
