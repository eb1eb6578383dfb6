"""Yogi: Adam whose second moment moves by additive steps, so that it cannot fall fast.

m ← β₁m + (1-β₁)g, v ← v - (1-β₂)·sign(v - g²)·g², and θ ← θ - lr·m̂ / (√v̂ + ε), where the hats
divide by 1 - β^t; the paper's Algorithm 2 has no such correction of the bias, the experiments that
compare with Yogi use it. Both moments start at "initial_accumulator".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._options import require
from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, stepping, tensor_by_tensor


def update(p: Any, g: Any, state: Any, group: Any, lr: float) -> None:
    """Take one step of a tensor."""
    beta1, beta2 = group["betas"]
    m, v, t = state["exp_avg"], state["exp_avg_sq"], state["step"]
    if t == 1:
        m.fill_(group["initial_accumulator"])
        v.fill_(group["initial_accumulator"])
    m.mul_(beta1).add_(g, alpha=1 - beta1)
    squared = g.square()
    v.addcmul_((v - squared).sign_(), squared, value=-(1 - beta2))
    denominator = v.sqrt().div_(math.sqrt(1 - beta2**t)).add_(group["eps"])
    p.addcdiv_(m, denominator, value=-lr / (1 - beta1**t))


@tensor_by_tensor
def oracle(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield a tensor after each step of the paper's update."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    beta1, beta2 = options["betas"]
    first, second = (np.full_like(theta, options["initial_accumulator"]) for _ in range(2))
    for t, gradient in enumerate(grads, 1):
        g = gradient + decay * theta
        first = beta1 * first + (1 - beta1) * g
        second = second - (1 - beta2) * np.sign(second - g**2) * g**2
        first_hat = first / (1 - beta1**t)
        second_hat = second / (1 - beta2**t)
        theta = theta - lr * first_hat / (np.sqrt(second_hat) + eps)
        yield theta


SPEC = OptimizerSpec(
    name="yogi",
    label="Yogi",
    paper="Zaheer et al., Adaptive Methods for Nonconvex Optimization, NeurIPS 2018",
    source="ours: torch has none, and the ports differ in how the moments start",
    build=stepping("Yogi", update, "exp_avg", "exp_avg_sq", initial_accumulator=require),
    defaults={
        **{"lr": 1e-2, "betas": (0.9, 0.999), "eps": 1e-3},
        **{"initial_accumulator": 1e-6, "weight_decay": 0.0},
    },
    oracle=oracle,
    cases=[
        Case({"betas": (0.5, 0.9), "eps": 1e-8}),
        Case({"initial_accumulator": 0.1, "weight_decay": 0.1}),
    ],
)
