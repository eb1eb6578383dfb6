"""AdaBelief: Adam that divides by the spread of gradients around their average.

m ← β₁m + (1-β₁)g, s ← β₂s + (1-β₂)(g-m)² + ε, and θ ← θ - lr·m̂ / (√ŝ + ε), where the hats divide by
1 - β^t. ε joins s at *every* step, so s tends to ε/(1-β₂) for constant gradients. Decay is coupled
(L2) or decoupled, where θ ← (1 - lr·λ)·θ first. With "rectify" the step is multiplied by RAdam's
factor (arXiv:1908.03265, Algorithm 2), and is lr·m̂ while there is none.

It differs from the package adabelief-pytorch, whose arithmetic it has, in the defaults: those of
the published image classifiers; GANs and language models had an ε of 1e-12 and 1e-16.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hvadam_bench.contenders._options import one_of
from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, stepping, tensor_by_tensor


def update(p: Any, g: Any, state: Any, group: Any, lr: float) -> None:
    """Take one step of a tensor."""
    (beta1, beta2), eps, t = group["betas"], group["eps"], state["step"]
    m, s = state["exp_avg"], state["exp_avg_var"]
    if group["weight_decay_mode"] == "decoupled":
        p.mul_(1 - lr * group["weight_decay"])
    m.mul_(beta1).add_(g, alpha=1 - beta1)
    spread = g - m
    s.mul_(beta2).addcmul_(spread, spread, value=1 - beta2).add_(eps)

    step_size, debias = lr / (1 - beta1**t), math.sqrt(1 - beta2**t)
    if not group["rectify"]:
        p.addcdiv_(m, s.sqrt().div_(debias).add_(eps), value=-step_size)
    elif factor := _rectification(beta2, t):
        p.addcdiv_(m, s.sqrt().add_(eps), value=-step_size * debias * factor)
    else:
        p.add_(m, alpha=-step_size)


def _rectification(beta2: float, t: int) -> float | None:
    """Return RAdam's factor, or None while the second moment holds under five gradients."""
    power = beta2**t
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * t * power / (1 - power)
    if length < 5:
        return None
    now, in_the_end = (length - 4) * (length - 2) / length, (longest - 4) * (longest - 2) / longest
    return math.sqrt(now / in_the_end)


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
    build=stepping(
        "AdaBelief",
        update,
        *("exp_avg", "exp_avg_var"),
        weight_decay_mode=partial(one_of, choices=("coupled", "decoupled")),
        rectify=partial(one_of, choices=(True, False)),
    ),
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
