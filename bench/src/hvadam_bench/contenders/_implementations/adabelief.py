"""AdaBelief for PyTorch."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from hvadam_bench.contenders._implementations._base import Moving, TensorByTensor
from hvadam_bench.contenders._options import one_of, positive, require, require_betas

WEIGHT_DECAY_MODES = ("coupled", "decoupled")


class AdaBelief(TensorByTensor):
    """Adam that divides by the spread of gradients around their average, not by their size.

    m ← β₁m + (1-β₁)g, s ← β₂s + (1-β₂)(g-m)² + ε, and θ ← θ - lr·m̂ / (√ŝ + ε), where the hats
    divide by 1 - β^t. ε joins s at *every* step, so s tends to ε/(1-β₂) for constant gradients.

    With `rectify` the step is multiplied by RAdam's factor, and is lr·m̂ while there is none.

    Args:
        params: Parameters or groups of them.
        lr: Learning rate.
        betas: β₁ and β₂.
        eps: ε. 1e-8 is what the paper's image classifiers used; its GANs and language models used
            1e-12 and 1e-16.
        weight_decay: Strength of the decay.
        weight_decay_mode: "coupled" (L2), or "decoupled", where θ ← (1 - lr·weight_decay)·θ first.
        rectify: Whether to rectify as RAdam does.

    Example:
        >>> from hvadam_bench.contenders import create
        >>> x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = create("adabelief", [x], lr=0.1)
        >>> for _ in range(100):
        ...     x.grad = 2 * x.detach()  # of x²
        ...     optimizer.step()
        >>> bool(x.abs().max() < 0.2)
        True

    References:
        Zhuang et al., AdaBelief Optimizer, arXiv:2010.07468, Algorithm 2; Liu et al., On the
        Variance of the Adaptive Learning Rate and Beyond, arXiv:1908.03265, Algorithm 2.

    Differs from the package adabelief-pytorch, whose arithmetic it has, in the defaults (those of
    the published image classifiers, not those since 0.1) and in that p.grad is not written.
    """

    def check(self, group: dict[str, Any]) -> None:
        require(self.who, "lr", group["lr"])
        require_betas(self.who, group["betas"])
        positive(self.who, "eps", group["eps"])
        require(self.who, "weight_decay", group["weight_decay"])
        one_of(self.who, "weight_decay_mode", group["weight_decay_mode"], WEIGHT_DECAY_MODES)
        one_of(self.who, "rectify", group["rectify"], (True, False))

    def init_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"exp_avg": torch.zeros_like(param), "exp_avg_var": torch.zeros_like(param)}

    def update(self, moving: Moving) -> None:
        param, grad, state, group, lr = moving
        (beta1, beta2), eps, t = group["betas"], group["eps"], state["step"]
        m, s = state["exp_avg"], state["exp_avg_var"]
        if group["weight_decay_mode"] == "decoupled":
            param.mul_(1 - lr * group["weight_decay"])
        m.mul_(beta1).add_(grad, alpha=1 - beta1)
        spread = grad - m
        s.mul_(beta2).addcmul_(spread, spread, value=1 - beta2).add_(eps)

        step_size, debias = lr / (1 - beta1**t), math.sqrt(1 - beta2**t)
        if not group["rectify"]:
            param.addcdiv_(m, s.sqrt().div_(debias).add_(eps), value=-step_size)
        elif factor := _rectification(beta2, t):
            param.addcdiv_(m, s.sqrt().add_(eps), value=-step_size * debias * factor)
        else:
            param.add_(m, alpha=-step_size)


def _rectification(beta2: float, t: int) -> float | None:
    """Return RAdam's factor, or None while the second moment holds under five gradients."""
    power = beta2**t
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * t * power / (1 - power)
    if length < 5:
        return None
    now, in_the_end = (length - 4) * (length - 2) / length, (longest - 4) * (longest - 2) / longest
    return math.sqrt(now / in_the_end)
