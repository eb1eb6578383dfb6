"""Yogi for PyTorch."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from hvadam_bench.contenders._implementations._base import Moving, TensorByTensor
from hvadam_bench.contenders._options import positive, require, require_betas


class Yogi(TensorByTensor):
    """Adam whose second moment grows and shrinks by additive steps.

    m ← β₁m + (1-β₁)g, v ← v - (1-β₂)·sign(v - g²)·g², and θ ← θ - lr·m̂ / (√v̂ + ε), where the hats
    divide by 1 - β^t. Both moments start at `initial_accumulator`.

    Args:
        params: Parameters or groups of them.
        lr: Learning rate.
        betas: β₁ and β₂.
        eps: ε.
        initial_accumulator: Where both moments start.
        weight_decay: Coupled (L2).

    Example:
        >>> from hvadam_bench.contenders import create
        >>> x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = create("yogi", [x], lr=0.1)
        >>> for _ in range(100):
        ...     x.grad = 2 * x.detach()  # of x²
        ...     optimizer.step()
        >>> bool(x.abs().max() < 0.2)
        True

    References:
        Zaheer et al., Adaptive Methods for Nonconvex Optimization, NeurIPS 2018, Algorithm 2.

    Differs from the paper's listing by the correction of the bias, which the experiments that
    compare with Yogi use.
    """

    def check(self, group: dict[str, Any]) -> None:
        require(self.who, "lr", group["lr"])
        require_betas(self.who, group["betas"])
        positive(self.who, "eps", group["eps"])
        require(self.who, "initial_accumulator", group["initial_accumulator"])
        require(self.who, "weight_decay", group["weight_decay"])

    def init_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        start = group["initial_accumulator"]
        return {
            "exp_avg": torch.full_like(param, start),
            "exp_avg_sq": torch.full_like(param, start),
        }

    def update(self, moving: Moving) -> None:
        param, grad, state, group, lr = moving
        beta1, beta2 = group["betas"]
        m, v, t = state["exp_avg"], state["exp_avg_sq"], state["step"]
        m.mul_(beta1).add_(grad, alpha=1 - beta1)
        squared = grad.square()
        v.addcmul_((v - squared).sign_(), squared, value=-(1 - beta2))
        denominator = v.sqrt().div_(math.sqrt(1 - beta2**t)).add_(group["eps"])
        param.addcdiv_(m, denominator, value=-lr / (1 - beta1**t))
