"""AdEMAMix: Adam whose numerator adds a second, far slower average of the gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, ours, tensor_by_tensor


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
    build=ours("ademamix", "AdEMAMix"),
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
