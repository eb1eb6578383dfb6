"""AdaBound for PyTorch."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from hvadam_bench.contenders._implementations._base import Moving, TensorByTensor
from hvadam_bench.contenders._options import positive, require, require_betas


class AdaBound(TensorByTensor):
    """Adam whose rates are clamped between two bounds that close in on SGD's.

    With Adam's m and v, c = √(1-β₂^t) / (1-β₁^t) and f = final_lr·lr / base_lr:
    η = clamp(lr·c / (√v + ε), f·(1 - 1/(γt+1)), f·(1 + 1/(γt))) per coordinate, and θ ← θ - η·m.
    base_lr is the lr that a group came with, so that a schedule of lr moves the bounds as well; it
    is kept in the group.

    Args:
        params: Parameters or groups of them.
        lr: Learning rate at the start, where the bounds are loose.
        betas: β₁ and β₂.
        final_lr: Learning rate in the end.
        gamma: γ, how fast the bounds close.
        eps: ε.
        weight_decay: Coupled (L2).

    Example:
        >>> from hvadam_bench.contenders import create
        >>> x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = create("adabound", [x], lr=0.1)
        >>> for _ in range(100):
        ...     x.grad = 2 * x.detach()  # of x²
        ...     optimizer.step()
        >>> bool(x.abs().max() < 0.1)
        True

    References:
        Luo et al., Adaptive Gradient Methods with Dynamic Bound of Learning Rate,
        arXiv:1902.09843, Algorithm 2.
    """

    def check(self, group: dict[str, Any]) -> None:
        positive(self.who, "lr", group["lr"])  # the bounds are relative to it
        require_betas(self.who, group["betas"])
        require(self.who, "final_lr", group["final_lr"])
        positive(self.who, "gamma", group["gamma"])
        positive(self.who, "eps", group["eps"])
        require(self.who, "weight_decay", group["weight_decay"])

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        group.setdefault("base_lr", float(group["lr"]))

    def init_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"exp_avg": torch.zeros_like(param), "exp_avg_sq": torch.zeros_like(param)}

    def update(self, moving: Moving) -> None:
        param, grad, state, group, lr = moving
        beta1, beta2 = group["betas"]
        m, v, t = state["exp_avg"], state["exp_avg_sq"], state["step"]
        m.mul_(beta1).add_(grad, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)

        step_size = lr * math.sqrt(1 - beta2**t) / (1 - beta1**t)
        final, age = group["final_lr"] * lr / group["base_lr"], group["gamma"] * t
        rate = v.sqrt().add_(group["eps"]).reciprocal_().mul_(step_size)
        rate.clamp_(final * (1 - 1 / (age + 1)), final * (1 + 1 / age))
        param.addcmul_(rate, m, value=-1)
