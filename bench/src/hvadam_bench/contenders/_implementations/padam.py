"""Padam for PyTorch."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from hvadam_bench.contenders._implementations._base import Moving, TensorByTensor
from hvadam_bench.contenders._options import between, positive, require, require_betas


class Padam(TensorByTensor):
    """AMSGrad whose denominator is raised to a power between 0 (SGD) and 1 (AMSGrad).

    With Adam's m and v, and v̄ the largest v so far: θ ← θ - lr·c·m / (√v̄ + ε)^(2·partial), where
    c = √(1-β₂^t) / (1-β₁^t).

    Args:
        params: Parameters or groups of them.
        lr: Learning rate.
        betas: β₁ and β₂.
        eps: ε.
        partial: Half the power of the denominator: 1/2 is AMSGrad, 0 is SGD with momentum.
        weight_decay: Coupled (L2).

    Example:
        >>> from hvadam_bench.contenders import create
        >>> x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = create("padam", [x], lr=0.1)
        >>> for _ in range(100):
        ...     x.grad = 2 * x.detach()  # of x²
        ...     optimizer.step()
        >>> bool(x.abs().max() < 0.2)
        True

    References:
        Chen et al., Closing the Generalization Gap of Adaptive Gradient Methods in Training Deep
        Neural Networks, arXiv:1806.06763, Algorithm 1.

    Differs from the listing as the authors' code does: ε inside the power, and Adam's correction
    of the bias.
    """

    def check(self, group: dict[str, Any]) -> None:
        require(self.who, "lr", group["lr"])
        require_betas(self.who, group["betas"])
        positive(self.who, "eps", group["eps"])
        between(self.who, "partial", group["partial"], 0, 0.5)
        require(self.who, "weight_decay", group["weight_decay"])

    def init_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
        return {name: torch.zeros_like(param) for name in names}

    def update(self, moving: Moving) -> None:
        param, grad, state, group, lr = moving
        beta1, beta2 = group["betas"]
        m, v, t = state["exp_avg"], state["exp_avg_sq"], state["step"]
        m.mul_(beta1).add_(grad, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        largest = torch.maximum(state["max_exp_avg_sq"], v, out=state["max_exp_avg_sq"])
        denominator = largest.sqrt().add_(group["eps"]).pow_(2 * group["partial"])
        step_size = lr * math.sqrt(1 - beta2**t) / (1 - beta1**t)
        param.addcdiv_(m, denominator, value=-step_size)
