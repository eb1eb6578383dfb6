"""SGD along the average of gradients: m ← βm + (1-β)g from m = 0, θ ← θ - αm.

This is heavy-ball with a learning rate 1 - β times as large, so at equal α it is ten times slower
at β = 0.9. It is the SGDM that the paper's toy figures fit: there adaptive methods end close to
SGDM, which holds for this form and not for heavy-ball. ``torch.optim.SGD(dampening=momentum)`` is
another method: it starts the average at the whole first gradient, which then weighs 1/(1-β) times
as much as any other and drives the early steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, stepping, tensor_by_tensor


def update(p: Any, g: Any, state: Any, group: Any, lr: float) -> None:
    """Take one step of a tensor."""
    m = state["exp_avg"].mul_(group["momentum"]).add_(g, alpha=1 - group["momentum"])
    p.add_(m, alpha=-lr)


@tensor_by_tensor
def oracle(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield a tensor after each step of the paper's update."""
    lr, beta, decay = (options[name] for name in ("lr", "momentum", "weight_decay"))
    m = np.zeros_like(theta)
    for gradient in grads:
        g = gradient + decay * theta
        m = beta * m + (1 - beta) * g
        theta = theta - lr * m
        yield theta


SPEC = OptimizerSpec(
    name="sgd_ema",
    label="SGD-EMA",
    paper="the SGDM of arXiv:2010.07468 and of the paper's toy functions",
    source="ours: torch.optim.SGD starts the average at the first gradient, another method",
    build=stepping("SGDEMA", update, "exp_avg"),
    defaults={"lr": 1.0, "momentum": 0.9, "weight_decay": 0.0},
    oracle=oracle,
    cases=[Case({"momentum": 0.0}), Case({"lr": 0.1, "weight_decay": 0.1})],
)
