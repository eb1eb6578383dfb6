"""Adai: SGD whose momentum, per coordinate, is less where gradients are large.

v ← β₂v + (1-β₂)g² and v̂ = v / (1-β₂^t) as in Adam; w = clamp(β₀·v̂ / mean(v̂), ε, 1), where the mean
is over *all* parameters that have a gradient; m ← (1-w)m + w·g; θ ← θ - lr·m̂. The paper's β₁ is 1 -
w. m̂ = m / q divides by the weights that m holds so far, q ← q + w(1-q), which is one minus the
product of all β₁. The authors advise ten times the rate of SGD with momentum 0.9.

It differs from the authors' code in that w and q are kept rather than β₁ and its product: the same
numbers, but 1 - 0.999 is not taken in low precision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hvadam_bench.contenders._options import positive
from hvadam_bench.contenders._spec import Arrays, Case, OptimizerSpec, stepping

STATE = ("exp_avg", "exp_avg_sq", "exp_avg_weight")


def update(everything: Sequence[Any], mean: Callable[[Sequence[Any]], Any] | None = None) -> None:
    """Take one step of all tensors; the mean of all v̂ may be another."""
    for _, g, state, group, _ in everything:
        state["exp_avg_sq"].mul_(group["betas"][1]).addcmul_(g, g, value=1 - group["betas"][1])
    whole = (mean or _mean)(everything)
    for p, g, state, group, lr in everything:
        beta0, beta2 = group["betas"]
        v_hat = state["exp_avg_sq"] / (1 - beta2 ** state["step"])
        mean_here = whole.to(p)  # 0 where no gradient was ever other than 0: then w is ε
        w = (v_hat / (mean_here + (mean_here == 0))).mul_(beta0).clamp_(group["eps"], 1)
        state["exp_avg"].lerp_(g, w)
        state["exp_avg_weight"].lerp_(w.new_ones(()).expand_as(w), w)
        p.addcdiv_(state["exp_avg"], state["exp_avg_weight"], value=-lr)


def _mean(everything: Sequence[Any]) -> Any:
    """Return the mean of all v̂ in float64."""
    total, count = 0.0, 0
    for p, _, state, group, _ in everything:
        moment = state["exp_avg_sq"].double().sum() / (1 - group["betas"][1] ** state["step"])
        total, count = moment + total, count + p.numel()
    return total / count


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr, eps, decay = (options[name] for name in ("lr", "eps", "weight_decay"))
    beta0, beta2 = options["betas"]
    theta = [np.array(p) for p in params]
    first, second = ([np.zeros_like(p) for p in params] for _ in range(2))
    product = [np.ones_like(p) for p in params]
    trace = []
    for t, step in enumerate(grads, 1):
        decayed = [g + decay * p for g, p in zip(step, theta, strict=True)]
        second = [beta2 * v + (1 - beta2) * g**2 for v, g in zip(second, decayed, strict=True)]
        hats = [v / (1 - beta2**t) for v in second]
        mean = np.concatenate([v.ravel() for v in hats]).mean()  # over all parameters
        for i, g in enumerate(decayed):
            # Nothing but zero gradients so far: any inertia will do, the authors' code divides 0/0.
            ratio = hats[i] / mean if mean > 0 else np.zeros_like(g)
            beta1 = np.clip(1 - beta0 * ratio, 0, 1 - eps)
            product[i] = product[i] * beta1
            first[i] = beta1 * first[i] + (1 - beta1) * g
            theta[i] = theta[i] - lr * first[i] / (1 - product[i])
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="adai",
    label="Adai",
    paper="arXiv:2006.15815",
    source="ours, after the authors' code, which writes into p.grad and needs an older torch",
    build=stepping("Adai", update, *STATE, together=True, eps=partial(positive, most=1.0)),
    defaults={"lr": 1.0, "betas": (0.1, 0.99), "eps": 1e-3, "weight_decay": 0.0},
    oracle=oracle,
    cases=[Case({"betas": (0.5, 0.9), "eps": 0.1}), Case({"lr": 0.1, "weight_decay": 0.1})],
    elementwise=False,  # the mean is over all parameters
)
