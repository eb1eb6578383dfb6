"""Lion for PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hvadam_bench.contenders._implementations._base import Moving, TensorByTensor
from hvadam_bench.contenders._options import require, require_betas


class Lion(TensorByTensor):
    """Lion, evolved sign momentum.

    θ ← θ - lr·(sign(β₁m + (1-β₁)g) + λθ), then m ← β₂m + (1-β₂)g.

    Args:
        params: Parameters or groups of them.
        lr: Learning rate; three to ten times below Adam's, for every coordinate moves by it.
        betas: β₁ and β₂.
        weight_decay: λ, decoupled; three to ten times above AdamW's.

    Example:
        >>> from hvadam_bench.contenders import create
        >>> x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> x.grad = torch.tensor([0.3, -7.0])
        >>> create("lion", [x], lr=0.5).step()
        >>> x.tolist()
        [0.5, -1.5]

    References:
        Chen et al., Symbolic Discovery of Optimization Algorithms, arXiv:2302.06675, Algorithm 2.
    """

    decay = "decoupled"

    def check(self, group: dict[str, Any]) -> None:
        require(self.who, "lr", group["lr"])
        require_betas(self.who, group["betas"])
        require(self.who, "weight_decay", group["weight_decay"])

    def init_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"exp_avg": torch.zeros_like(param)}

    def update(self, moving: Moving) -> None:
        param, grad, state, group, lr = moving
        beta1, beta2 = group["betas"]
        direction = state["exp_avg"].lerp(grad, 1 - beta1).sign_()
        param.mul_(1 - lr * group["weight_decay"]).sub_(direction, alpha=lr)
        state["exp_avg"].lerp_(grad, 1 - beta2)
