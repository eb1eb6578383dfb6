"""AdEMAMix: Adam whose numerator adds a second, far slower average of the gradients.

m₁ ← β₁m₁ + (1-β₁)g, m₂ ← β₃(t)m₂ + (1-β₃(t))g, ν ← β₂ν + (1-β₂)g², and θ ← θ - lr·((m̂₁ + α(t)m₂) /
(√ν̂ + ε) + λθ); m₂ has no bias correction. Over the first "horizon" steps, which the paper sets to
the length of the run, α(t) rises linearly from 0 to α, and β₃(t) from β₁ to β₃ so that 1/ln β₃(t)
is linear; 0 is for no schedules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hvadam_bench.contenders._options import require, require_betas, whole
from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, stepping, tensor_by_tensor

STATE = ("exp_avg", "exp_avg_slow", "exp_avg_sq")


def update(p: Any, g: Any, state: Any, group: Any, lr: float) -> None:
    """Take one step of a tensor."""
    (beta1, beta2, beta3), t = group["betas"], state["step"]
    done = min(1.0, t / group["horizon"]) if group["horizon"] else 1.0
    slow_beta = beta3
    if done < 1:
        slow_beta = math.exp(1 / ((1 - done) / math.log(beta1) + done / math.log(beta3)))
    fast, slow, second = (state[name] for name in STATE)
    fast.mul_(beta1).add_(g, alpha=1 - beta1)
    slow.mul_(slow_beta).add_(g, alpha=1 - slow_beta)
    second.mul_(beta2).addcmul_(g, g, value=1 - beta2)
    root = second.sqrt().div_(math.sqrt(1 - beta2**t)).add_(group["eps"])
    both = (fast / (1 - beta1**t)).add_(slow, alpha=done * group["alpha"])
    p.mul_(1 - lr * group["weight_decay"]).addcdiv_(both, root, value=-lr)


def _betas(who: str, name: str, betas: Any) -> None:
    require_betas(who, betas, 3)
    if betas[0] == 0:
        raise ValueError(f"{who}: betas[0] must be in (0, 1), got 0.")
    if betas[2] < betas[0]:
        raise ValueError(
            f"{who}: betas[2] must be at least betas[0], {betas[0]:g}, got {betas[2]:g}."
        )


@tensor_by_tensor
def oracle(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield a tensor after each step of the paper's Algorithm 1, with both schedulers."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    beta1, beta2, beta3 = options["betas"]
    fast, slow, second = (np.zeros_like(theta) for _ in range(3))
    for t, g in enumerate(grads, 1):
        done = min(1.0, t / options["horizon"]) if options["horizon"] else 1.0
        alpha = done * options["alpha"]
        if done < 1:
            ends = np.log(beta1), np.log(beta3)
            slow_beta = np.exp(ends[0] * ends[1] / ((1 - done) * ends[1] + done * ends[0]))
        else:
            slow_beta = beta3
        fast = beta1 * fast + (1 - beta1) * g
        slow = slow_beta * slow + (1 - slow_beta) * g
        second = beta2 * second + (1 - beta2) * g**2
        root = np.sqrt(second / (1 - beta2**t)) + eps
        update = (fast / (1 - beta1**t) + alpha * slow) / root
        theta = theta - lr * (update + decay * theta)
        yield theta


SPEC = OptimizerSpec(
    name="ademamix",
    label="AdEMAMix",
    paper="arXiv:2409.03137",
    source="ours, after Algorithm 1: torch has none",
    build=stepping(
        "AdEMAMix",
        update,
        *STATE,
        decay="decoupled",
        **{"betas": _betas, "eps": require, "alpha": require, "horizon": partial(whole, low=0)},
    ),
    defaults={
        **{"lr": 1e-3, "betas": (0.9, 0.999, 0.9999), "eps": 1e-8, "weight_decay": 0.0},
        **{"alpha": 5.0, "horizon": 0},
    },
    oracle=oracle,
    decay="decoupled",
    cases=[
        Case({"betas": (0.5, 0.9, 0.95), "eps": 1e-3, "horizon": 8}),
        Case({"lr": 0.01, "weight_decay": 1.0, "alpha": 2.0}),
        Case({"horizon": 100}),
    ],
)
