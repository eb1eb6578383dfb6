"""AdaBelief: Adam that divides by the spread of gradients around their average."""

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
    coupled = options["weight_decay_mode"] == "coupled"
    rho_inf = 2 / (1 - beta2) - 1
    first, spread = (np.zeros_like(theta) for _ in range(2))
    for t, gradient in enumerate(grads, 1):
        rho = rho_inf - 2 * t * beta2**t / (1 - beta2**t)
        g = gradient + decay * theta if coupled else gradient
        start = theta if coupled else theta - lr * decay * theta
        first = beta1 * first + (1 - beta1) * g
        spread = beta2 * spread + (1 - beta2) * (g - first) ** 2 + eps
        update = first / (1 - beta1**t)
        if not options["rectify"]:
            update = update / (np.sqrt(spread / (1 - beta2**t)) + eps)
        elif rho >= 5:
            rectified = np.sqrt(
                ((rho - 4) * (rho - 2) * rho_inf) / ((rho_inf - 4) * (rho_inf - 2) * rho)
            )
            update = rectified * update * np.sqrt(1 - beta2**t) / (np.sqrt(spread) + eps)
        theta = start - lr * update
        yield theta


SPEC = OptimizerSpec(
    name="adabelief",
    label="AdaBelief",
    paper="arXiv:2010.07468",
    source="ours: adabelief-pytorch writes into p.grad and prints, pytorch_optimizer's fast path "
    "leaves out the first bias correction",
    build=ours("adabelief", "AdaBelief"),
    defaults={
        "lr": 1e-3,
        "betas": (0.9, 0.999),
        "eps": 1e-8,  # as in the paper's image classifiers
        "weight_decay": 0.0,
        "weight_decay_mode": "coupled",
        "rectify": False,
    },
    oracle=oracle,
    cases=[
        Case({"betas": (0.5, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
        Case({"eps": 1e-16, "weight_decay": 0.1, "weight_decay_mode": "decoupled"}),
        Case({"rectify": True}),
    ],
)
