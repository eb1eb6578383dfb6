"""QHAdam: Adam whose step is part average, part present gradient.

m and s are Adam's, and θ ← θ - lr·((1-ν₁)g + ν₁m̂) / (√((1-ν₂)g² + ν₂ŝ) + ε) with "nus" ν₁ and ν₂;
with (1, 1) it is Adam. By the second one, 1, s is Adam's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._options import between
from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, stepping, tensor_by_tensor


def update(p: Any, g: Any, state: Any, group: Any, lr: float) -> None:
    """Take one step of a tensor."""
    (beta1, beta2), (nu1, nu2), t = group["betas"], group["nus"], state["step"]
    first, second = state["exp_avg"], state["exp_avg_sq"]
    first.mul_(beta1).add_(g, alpha=1 - beta1)
    second.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    step = (first * (nu1 / (1 - beta1**t))).add_(g, alpha=1 - nu1)
    square = (second * (nu2 / (1 - beta2**t))).addcmul_(g, g, value=1 - nu2)
    p.mul_(1 - lr * group["weight_decay"])
    p.addcdiv_(step, square.sqrt_().add_(group["eps"]), value=-lr)


def _nus(who: str, name: str, nus: Any) -> None:
    if not isinstance(nus, (tuple, list)) or len(nus) != 2:
        raise ValueError(f"{who}: nus must be a pair of numbers, got {nus!r}.")
    for i, nu in enumerate(nus):
        between(who, f"nus[{i}]", nu, 0.0, 1.0)


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
    build=stepping("QHAdam", update, "exp_avg", "exp_avg_sq", decay="decoupled", nus=_nus),
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
