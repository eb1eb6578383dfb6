"""QHAdam for PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hvadam_bench.contenders._implementations._base import Moving, TensorByTensor
from hvadam_bench.contenders._options import between, positive, require, require_betas


class QHAdam(TensorByTensor):
    """Adam with both averages discounted: part average, part present gradient.

    m and s are Adam's, and θ ← θ - lr·((1-ν₁)g + ν₁m̂) / (√((1-ν₂)g² + ν₂ŝ) + ε).

    Args:
        params: Parameters or groups of them.
        lr: Learning rate.
        betas: β₁ and β₂.
        nus: ν₁ and ν₂; with (1, 1) it is Adam.
        eps: ε.
        weight_decay: Decoupled.

    References:
        Ma and Yarats, Quasi-hyperbolic momentum and Adam for deep learning, arXiv:1810.06801.
    """

    decay = "decoupled"

    def check(self, group: dict[str, Any]) -> None:
        for name in ("lr", "weight_decay"):
            require(self.who, name, group[name])
        positive(self.who, "eps", group["eps"])
        require_betas(self.who, group["betas"])
        if not isinstance(group["nus"], (tuple, list)) or len(group["nus"]) != 2:
            raise ValueError(f"{self.who}: nus must be a pair of numbers, got {group['nus']!r}.")
        for i, nu in enumerate(group["nus"]):
            between(self.who, f"nus[{i}]", nu, 0.0, 1.0)

    def init_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {name: torch.zeros_like(param) for name in ("exp_avg", "exp_avg_sq")}

    def update(self, moving: Moving) -> None:
        param, grad, state, group, lr = moving
        (beta1, beta2), (nu1, nu2), t = group["betas"], group["nus"], state["step"]
        first, second = state["exp_avg"], state["exp_avg_sq"]
        first.mul_(beta1).add_(grad, alpha=1 - beta1)
        second.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        step = (first * (nu1 / (1 - beta1**t))).add_(grad, alpha=1 - nu1)
        square = (second * (nu2 / (1 - beta2**t))).addcmul_(grad, grad, value=1 - nu2)
        param.mul_(1 - lr * group["weight_decay"])
        param.addcdiv_(step, square.sqrt_().add_(group["eps"]), value=-lr)
