"""AdaBound: Adam whose rates are clamped between bounds that close in on those of SGD.

With Adam's m and v, c = √(1-β₂^t) / (1-β₁^t) and f = final_lr·lr / base_lr, the rate of a
coordinate is η = clamp(lr·c / (√v + ε), f·(1 - 1/(γt+1)), f·(1 + 1/(γt))), and θ ← θ - η·m. base_lr
is the lr that a group came with, so that a schedule of lr moves the bounds as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._options import positive, require
from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, stepping, tensor_by_tensor


def update(p: Any, g: Any, state: Any, group: Any, lr: float) -> None:
    """Take one step of a tensor."""
    beta1, beta2 = group["betas"]
    m, v, t = state["exp_avg"], state["exp_avg_sq"], state["step"]
    m.mul_(beta1).add_(g, alpha=1 - beta1)
    v.mul_(beta2).addcmul_(g, g, value=1 - beta2)

    step_size = lr * math.sqrt(1 - beta2**t) / (1 - beta1**t)
    final, age = group["final_lr"] * lr / group["base_lr"], group["gamma"] * t
    rate = v.sqrt().add_(group["eps"]).reciprocal_().mul_(step_size)
    rate.clamp_(final * (1 - 1 / (age + 1)), final * (1 + 1 / age))
    p.addcmul_(rate, m, value=-1)


@tensor_by_tensor
def oracle(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield a tensor after each step of the paper's update."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    final_lr, gamma = options["final_lr"], options["gamma"]  # lr is constant here: no rescaling
    beta1, beta2 = options["betas"]
    first, second = (np.zeros_like(theta) for _ in range(2))
    for t, gradient in enumerate(grads, 1):
        lower = final_lr * (1 - 1 / (gamma * t + 1))
        upper = final_lr * (1 + 1 / (gamma * t))
        alpha = lr * np.sqrt(1 - beta2**t) / (1 - beta1**t)
        g = gradient + decay * theta
        first = beta1 * first + (1 - beta1) * g
        second = beta2 * second + (1 - beta2) * g**2
        rate = np.clip(alpha / (np.sqrt(second) + eps), lower, upper)
        theta = theta - rate * first
        yield theta


SPEC = OptimizerSpec(
    name="adabound",
    label="AdaBound",
    paper="arXiv:1902.09843",
    source="ours, after the authors' code, whose bounds lose their base rates when pickled",
    build=stepping(
        "AdaBound",
        update,
        *("exp_avg", "exp_avg_sq"),
        **{"lr": positive, "final_lr": require, "gamma": positive},  # bounds are relative to lr
    ),
    defaults={
        **{"lr": 1e-3, "betas": (0.9, 0.999), "final_lr": 0.1, "gamma": 1e-3},
        **{"eps": 1e-8, "weight_decay": 0.0},
    },
    oracle=oracle,
    cases=[
        Case({"gamma": 0.5, "final_lr": 0.01}),  # both bounds bite
        Case({"betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ],
)
