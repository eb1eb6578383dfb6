"""Lion: the sign of an interpolated average, with decoupled decay.

θ ← θ - lr·(sign(β₁m + (1-β₁)g) + λθ), then m ← β₂m + (1-β₂)g. Its rates are three to ten times
below Adam's, because every coordinate moves by the rate; its decay is as much above AdamW's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, stepping, tensor_by_tensor


def update(p: Any, g: Any, state: Any, group: Any, lr: float) -> None:
    """Take one step of a tensor."""
    beta1, beta2 = group["betas"]
    direction = state["exp_avg"].lerp(g, 1 - beta1).sign_()
    p.mul_(1 - lr * group["weight_decay"]).sub_(direction, alpha=lr)
    state["exp_avg"].lerp_(g, 1 - beta2)


@tensor_by_tensor
def oracle(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield a tensor after each step of the paper's update."""
    lr, decay = options["lr"], options["weight_decay"]
    beta1, beta2 = options["betas"]
    m = np.zeros_like(theta)
    for g in grads:
        update = np.sign(beta1 * m + (1 - beta1) * g)
        theta = theta - lr * (update + decay * theta)
        m = beta2 * m + (1 - beta2) * g
        yield theta


SPEC = OptimizerSpec(
    name="lion",
    label="Lion",
    paper="arXiv:2302.06675",
    source="ours; torch has none",
    build=stepping("Lion", update, "exp_avg", decay="decoupled"),
    defaults={"lr": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0.0},
    oracle=oracle,
    decay="decoupled",
    cases=[Case({"betas": (0.5, 0.9)}), Case({"lr": 0.01, "weight_decay": 1.0})],
)
