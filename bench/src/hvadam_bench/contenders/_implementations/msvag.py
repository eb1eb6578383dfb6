"""M-SVAG for PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hvadam_bench.contenders._implementations._base import Moving, TensorByTensor
from hvadam_bench.contenders._options import require

# ρ is 1 where the average is of one gradient alone: at the first step, and always if beta is 0.
_SINGLE = 0.9999


class MSVAG(TensorByTensor):
    """SGD with momentum whose coordinates step less the noisier they are.

    m = Σ βg / Σ β and v = Σ βg² / Σ β are averages with weights β^age, ρ = (1-β)(1+β^t) /
    ((1+β)(1-β^t)) is the share of a gradient's variance that m keeps, s = (v - m²) / (1-ρ)
    estimates that variance, and θ ← θ - lr·m·m² / (m² + ρs).

    Args:
        params: Parameters or groups of them.
        lr: Learning rate.
        beta: Momentum.
        weight_decay: Coupled (L2).

    Example:
        >>> from hvadam_bench.contenders import create
        >>> x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = create("msvag", [x], lr=0.1)
        >>> for _ in range(100):
        ...     x.grad = 2 * x.detach()  # of x²
        ...     optimizer.step()
        >>> bool(x.abs().max() < 0.1)
        True

    References:
        Balles & Hennig, Dissecting Adam, arXiv:1705.07774, M-SVAG.

    Differs from the authors' code in the first step alone: that caps ρ at 0.9999, which magnifies
    the rounding of v - m² ten thousand times; here a single gradient has no variance.
    """

    def check(self, group: dict[str, Any]) -> None:
        require(self.who, "lr", group["lr"])
        require(self.who, "beta", group["beta"], 0, 1)
        require(self.who, "weight_decay", group["weight_decay"])

    def init_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"exp_avg": torch.zeros_like(param), "exp_avg_sq": torch.zeros_like(param)}

    def update(self, moving: Moving) -> None:
        param, grad, state, group, lr = moving
        beta, power = group["beta"], group["beta"] ** state["step"]
        state["exp_avg"].mul_(beta).add_(grad, alpha=1 - beta)
        state["exp_avg_sq"].mul_(beta).addcmul_(grad, grad, value=1 - beta)

        m = state["exp_avg"] / (1 - power)
        m_squared = m.square()
        rho = (1 - beta) * (1 + power) / ((1 + beta) * (1 - power))
        if rho < _SINGLE:
            variance = (state["exp_avg_sq"] / (1 - power)).sub_(m_squared).div_(1 - rho)
        else:
            variance = torch.zeros_like(m)
        factor = m_squared / variance.mul_(rho).add_(m_squared)
        factor = factor.clamp_(0, 1).nan_to_num_(nan=0.0)  # 0/0: no gradient so far
        param.addcmul_(factor, m, value=-lr)
