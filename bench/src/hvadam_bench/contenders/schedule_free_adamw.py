"""Schedule-Free AdamW: gradients between a fast iterate and its average, which is evaluated.

The parameters are y, where gradients are taken. Inside `evaluation` they are x, the average of
the fast iterate z; x is kept nowhere, because y = (1-β₁)z + β₁x.

γ = lr·min(1, t/T) with T = warmup_steps, and c = γ² / Σγ²; v ← β₂v + (1-β₂)g² and v̂ = v / (1-β₂^t);
z ← z - γ·g / (√v̂ + ε) - γλy; x ← (1-c)x + cz. The rate, one to ten times Adam's, is to be left
constant.

It differs from the authors' package in that there are no modes to switch: `step` works at once, and
an evaluation leaves no trace, where the package computes y anew and moves its last bits. A
schedule, if there is one after all, enters c as in the paper; the package takes its maximum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from hvadam_bench.contenders._options import require, require_betas, whole
from hvadam_bench.contenders._spec import Arrays, Case, OptimizerSpec, both, stepping


def update(y: Any, g: Any, state: Any, group: Any, lr: float) -> None:
    """Take one step of a tensor."""
    beta1, beta2 = group["betas"]
    if state["step"] == 1:
        state["z"].copy_(y)
    rate = lr * min(1.0, state["step"] / max(1, group["warmup_steps"]))
    # A plain number: loading a checkpoint would round a tensor to the parameter's dtype.
    state["weight_sum"] = state.get("weight_sum", 0.0) + rate**2
    c = rate**2 / state["weight_sum"] if rate else 0.0

    state["exp_avg_sq"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
    root = (state["exp_avg_sq"] / (1 - beta2 ** state["step"])).sqrt_().add_(group["eps"])
    direction = (g / root).add_(y, alpha=group["weight_decay"])
    # (1-β₁)z + β₁x of the new z and x, in terms of the old y and z
    y.lerp_(state["z"], c).add_(direction, alpha=rate * (beta1 * (1 - c) - 1))
    state["z"].sub_(direction, alpha=rate)


def _x(y: Any, state: Any, group: Any) -> Any:
    """Return the average that is evaluated."""
    return y.lerp(state["z"], 1 - 1 / group["betas"][0])


def _betas(who: str, name: str, betas: Any) -> None:
    require_betas(who, betas)
    if betas[0] == 0:
        raise ValueError(f"{who}: betas[0] must be above 0, or y tells nothing of x.")


def _sequences(
    params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]
) -> Iterator[tuple[Arrays, Arrays]]:
    """Yield y and x after each step, by the paper's first listing, which keeps all three."""
    eps, decay = options["eps"], options["weight_decay"]
    beta1, beta2 = options["betas"]
    x, y, z = ([np.array(p) for p in params] for _ in range(3))
    second = [np.zeros_like(p) for p in params]
    squares = 0.0
    for t, step in enumerate(grads, 1):
        rate = options["lr"]
        if options["warmup_steps"]:
            rate *= min(1, t / options["warmup_steps"])
        squares += rate**2
        for i, g in enumerate(step):
            second[i] = beta2 * second[i] + (1 - beta2) * g**2
            second_hat = second[i] / (1 - beta2**t)
            z[i] = z[i] - rate * g / (np.sqrt(second_hat) + eps) - rate * decay * y[i]
            x[i] = (1 - rate**2 / squares) * x[i] + rate**2 / squares * z[i]
            y[i] = (1 - beta1) * z[i] + beta1 * x[i]
        yield list(y), list(x)


oracle, evaluated = both(_sequences)
SPEC = OptimizerSpec(
    name="schedule_free_adamw",
    label="Schedule-free",
    paper="arXiv:2405.15682",
    source="ours; in the authors' package an evaluation moves the last bits of the parameters",
    build=stepping(
        "ScheduleFreeAdamW",
        update,
        *("z", "exp_avg_sq"),
        decay="decoupled",
        shown=_x,
        **{"betas": _betas, "eps": require, "warmup_steps": partial(whole, low=0)},
    ),
    defaults={
        **{"lr": 2.5e-3, "betas": (0.9, 0.999), "eps": 1e-8},
        **{"weight_decay": 0.0, "warmup_steps": 0},
    },
    first_rate=3e-3,
    oracle=oracle,
    decay="decoupled",
    cases=[
        Case({"betas": (0.5, 0.9), "eps": 1e-3, "warmup_steps": 4}),
        Case({"lr": 0.01, "weight_decay": 1.0}),
    ],
    evaluation=methodcaller("evaluation"),
    averages=True,
    evaluated=evaluated,
)
