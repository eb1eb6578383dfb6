"""SGD along the average of gradients: m ← βm + (1-β)g from m = 0, θ ← θ - αm.

This is heavy-ball with a learning rate 1 - β times as large, so at equal α it is ten times slower
at β = 0.9. It is the SGDM that the paper's toy figures fit: there adaptive methods end close to
SGDM, which holds for this form and not for heavy-ball. ``torch.optim.SGD(dampening=momentum)`` is
another method: it starts the average at the whole first gradient, which then weighs 1/(1-β) times
as much as any other and drives the early steps. Starting torch's buffers at 0 is all it takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build our SGDEMA."""
    from hvadam_bench.contenders._implementations.sgd_ema import SGDEMA

    return SGDEMA(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr, beta, decay = (options[name] for name in ("lr", "momentum", "weight_decay"))
    theta = [np.array(p) for p in params]
    m = [np.zeros_like(p) for p in params]
    trace = []
    for step in grads:
        for i, gradient in enumerate(step):
            g = gradient + decay * theta[i]
            m[i] = beta * m[i] + (1 - beta) * g
            theta[i] = theta[i] - lr * m[i]
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="sgd_ema",
    label="SGD-EMA",
    paper="the SGDM of arXiv:2010.07468 and of the paper's toy functions",
    source="torch.optim.SGD with averages that start at 0; torch's own start is another method",
    build=build,
    defaults={"lr": 1.0, "momentum": 0.9, "weight_decay": 0.0},
    oracle=oracle,
    cases=[Case({"momentum": 0.0}), Case({"lr": 0.1, "weight_decay": 0.1})],
    bad=[
        BadCase({"lr": -1.0}, "Invalid learning rate"),
        BadCase({"momentum": 1.0}, r"SGDEMA: momentum must be in \[0, 1\), got 1"),
        BadCase({"weight_decay": -1.0}, "Invalid weight_decay"),
    ],
)
