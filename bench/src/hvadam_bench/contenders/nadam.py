"""NAdam: Adam that looks ahead, as Nesterov's momentum does.

Its momentum rises from β1/2 to β1 while training goes on, μ_t = β1·(1 - 0.96^(t·ψ)/2). In torch ψ,
`momentum_decay`, is 0.004, so that half of the way takes 4,200 steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build torch's NAdam."""
    from torch.optim import NAdam

    return NAdam(groups, decoupled_weight_decay=True, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update, with its schedule."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    beta1, beta2 = options["betas"]

    def momentum(t: int) -> float:
        return beta1 * (1 - 0.5 * 0.96 ** (t * options["momentum_decay"]))

    theta = [np.array(p) for p in params]
    first, second = ([np.zeros_like(p) for p in params] for _ in range(2))
    product = 1.0  # of all μ so far: how much of the average is still its zero start
    trace = []
    for t, step in enumerate(grads, 1):
        now, then = momentum(t), momentum(t + 1)
        product *= now
        for i, g in enumerate(step):
            first[i] = beta1 * first[i] + (1 - beta1) * g
            second[i] = beta2 * second[i] + (1 - beta2) * g**2
            ahead = then * first[i] / (1 - product * then) + (1 - now) * g / (1 - product)
            root = np.sqrt(second[i] / (1 - beta2**t)) + eps
            theta[i] = theta[i] - lr * decay * theta[i] - lr * ahead / root
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="nadam",
    label="NAdam",
    paper="Dozat, Incorporating Nesterov Momentum into Adam, ICLR 2016 workshop",
    source="torch.optim.NAdam, which is the published algorithm with a schedule of the momentum",
    build=build,
    defaults={
        **{"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0},
        "momentum_decay": 4e-3,
    },
    oracle=oracle,
    decay="decoupled",
    cases=[
        Case({"betas": (0.5, 0.9), "eps": 1e-3}),
        Case({"lr": 0.01, "weight_decay": 1.0}),
        Case({"momentum_decay": 1.0}),
    ],
    bad=[
        BadCase({"lr": -1.0}, "Invalid learning rate"),
        BadCase({"betas": (1.0, 0.999)}, "Invalid beta parameter at index 0"),
        BadCase({"betas": (0.9, 1.0)}, "Invalid beta parameter at index 1"),
        BadCase({"eps": -1.0}, "Invalid epsilon"),
        BadCase({"weight_decay": -1.0}, "Invalid weight_decay"),
        BadCase({"momentum_decay": -1.0}, "Invalid momentum_decay"),
    ],
    tolerance=1e-9,  # torch keeps the product of momenta in float32
)
