"""SGD with heavy-ball momentum: v ← μv + g, θ ← θ - αv."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, builder, tensor_by_tensor


@tensor_by_tensor
def oracle(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield a tensor after each step of the paper's update."""
    lr, momentum, decay = (options[name] for name in ("lr", "momentum", "weight_decay"))
    velocity = np.zeros_like(theta)
    for gradient in grads:
        g = gradient + decay * theta
        velocity = momentum * velocity + g
        theta = theta - lr * velocity
        yield theta


SPEC = OptimizerSpec(
    name="sgd",
    label="SGD",
    paper="Polyak, 1964, doi:10.1016/0041-5553(64)90137-5",
    source="torch.optim.SGD, which is heavy-ball as long as dampening is 0",
    build=builder("torch.optim", "SGD"),
    defaults={"lr": 0.1, "momentum": 0.9, "weight_decay": 0.0},
    oracle=oracle,
    cases=[Case({"momentum": 0.0}), Case({"lr": 0.01, "weight_decay": 0.1})],
)
