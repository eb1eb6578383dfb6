"""QHAdam: Adam whose step is part average, part present gradient.

The paper's discounts of both averages are options; by the second one, 1, s is Adam's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, ours, tensor_by_tensor


@tensor_by_tensor
def oracle(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield a tensor after each step of the paper's update."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    (nu1, nu2), (beta1, beta2) = options["nus"], options["betas"]
    first, second = (np.zeros_like(theta) for _ in range(2))
    for t, g in enumerate(grads, 1):
        first = beta1 * first + (1 - beta1) * g
        second = beta2 * second + (1 - beta2) * g**2
        step = (1 - nu1) * g + nu1 * first / (1 - beta1**t)
        root = np.sqrt((1 - nu2) * g**2 + nu2 * second / (1 - beta2**t)) + eps
        theta = theta - lr * decay * theta - lr * step / root
        yield theta


SPEC = OptimizerSpec(
    name="qhadam",
    label="QHAdam",
    paper="arXiv:1810.06801",
    source="ours, as torch has none; with the values that the paper recommends",
    build=ours("qhadam", "QHAdam"),
    defaults={
        **{"lr": 1e-3, "betas": (0.995, 0.999), "nus": (0.7, 1.0)},
        **{"eps": 1e-8, "weight_decay": 0.0},
    },
    oracle=oracle,
    decay="decoupled",
    cases=[
        Case({"betas": (0.5, 0.9), "nus": (0.3, 0.6), "eps": 1e-3}),
        Case({"lr": 0.01, "weight_decay": 1.0}),
    ],
)
