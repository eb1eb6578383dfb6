"""RMSProp: the gradient over the root of its mean square, whose bias is not corrected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, builder, tensor_by_tensor


@tensor_by_tensor
def oracle(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield a tensor after each step of the paper's update."""
    lr, alpha, eps, momentum, decay = (
        options[name] for name in ("lr", "alpha", "eps", "momentum", "weight_decay")
    )
    mean_square, velocity = (np.zeros_like(theta) for _ in range(2))
    for gradient in grads:
        g = gradient + decay * theta
        mean_square = alpha * mean_square + (1 - alpha) * g**2
        velocity = momentum * velocity + g / (np.sqrt(mean_square) + eps)
        theta = theta - lr * velocity
        yield theta


SPEC = OptimizerSpec(
    name="rmsprop",
    label="RMSprop",
    paper="Tieleman & Hinton, Neural Networks for Machine Learning, lecture 6e, 2012",
    source="torch.optim.RMSprop; its alpha of 0.99 is the AdaBelief study's, the lecture has 0.9",
    build=builder("torch.optim", "RMSprop"),
    defaults={"lr": 1e-3, "alpha": 0.99, "eps": 1e-8, "momentum": 0.0, "weight_decay": 0.0},
    oracle=oracle,
    cases=[Case({"alpha": 0.9, "momentum": 0.9}), Case({"lr": 0.01, "weight_decay": 0.1})],
)
