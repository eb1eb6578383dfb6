"""NAdam: Adam that looks ahead, as Nesterov's momentum does.

Its momentum rises from β1/2 to β1 while training goes on, μ_t = β1·(1 - 0.96^(t·ψ)/2). In torch ψ,
`momentum_decay`, is 0.004, so that half of the way takes 4,200 steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, builder, tensor_by_tensor


@tensor_by_tensor
def oracle(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield a tensor after each step of the paper's update, with its schedule."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    beta1, beta2 = options["betas"]

    def momentum(t: int) -> float:
        return beta1 * (1 - 0.5 * 0.96 ** (t * options["momentum_decay"]))

    first, second = (np.zeros_like(theta) for _ in range(2))
    product = 1.0  # of all μ so far: how much of the average is still its zero start
    for t, g in enumerate(grads, 1):
        now, then = momentum(t), momentum(t + 1)
        product *= now
        first = beta1 * first + (1 - beta1) * g
        second = beta2 * second + (1 - beta2) * g**2
        ahead = then * first / (1 - product * then) + (1 - now) * g / (1 - product)
        root = np.sqrt(second / (1 - beta2**t)) + eps
        theta = theta - lr * decay * theta - lr * ahead / root
        yield theta


SPEC = OptimizerSpec(
    name="nadam",
    label="NAdam",
    paper="Dozat, Incorporating Nesterov Momentum into Adam, ICLR 2016 workshop",
    source="torch.optim.NAdam, which is the published algorithm with a schedule of the momentum",
    build=builder("torch.optim", "NAdam", decoupled_weight_decay=True),
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
    tolerance=1e-9,  # torch keeps the product of momenta in float32
)
