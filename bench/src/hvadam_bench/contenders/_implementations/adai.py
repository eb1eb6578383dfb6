"""Adai for PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hvadam_bench.contenders._implementations._base import Moving, TensorByTensor
from hvadam_bench.contenders._options import between, positive, require, require_betas


class Adai(TensorByTensor):
    """SGD with a momentum of its own for each coordinate: less where gradients are large.

    v ← β₂v + (1-β₂)g² and v̂ = v / (1-β₂^t) as in Adam; w = clamp(β₀·v̂ / mean(v̂), ε, 1), where the
    mean is over *all* parameters that have a gradient; m ← (1-w)m + w·g; θ ← θ - lr·m̂. The paper's
    β₁ is 1 - w. m̂ = m / q divides by the weights that m holds so far, q ← q + w(1-q), which is one
    minus the product of all β₁.

    Args:
        params: Parameters or groups of them.
        lr: Learning rate; the authors advise ten times that of SGD with momentum 0.9.
        betas: β₀ and β₂.
        eps: ε, the least share of a new gradient.
        weight_decay: Coupled (L2).

    Example:
        >>> from hvadam_bench.contenders import create
        >>> x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = create("adai", [x], lr=0.1)
        >>> for _ in range(200):
        ...     x.grad = 2 * x.detach()  # of x²
        ...     optimizer.step()
        >>> bool(x.abs().max() < 0.1)
        True

    References:
        Xie et al., Adaptive Inertia: Disentangling the Effects of Adaptive Learning Rate and
        Momentum, arXiv:2006.15815.

    Differs from the authors' code in that w and q are kept rather than β₁ and its product: the
    same numbers, but 1 - 0.999 is not taken in low precision, and p.grad is not written.
    """

    def check(self, group: dict[str, Any]) -> None:
        require(self.who, "lr", group["lr"])
        require_betas(self.who, group["betas"])
        positive(self.who, "eps", group["eps"])
        between(self.who, "eps", group["eps"], 0, 1)
        require(self.who, "weight_decay", group["weight_decay"])

    def init_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        names = ("exp_avg", "exp_avg_sq", "exp_avg_weight")
        return {name: torch.zeros_like(param) for name in names}

    def advance(self) -> None:
        everything = list(self.moving())
        if not everything:
            return
        mean = self._second_moments(everything)
        for moving in everything:
            self._move(moving, mean)

    def _second_moments(self, everything: list[Moving]) -> Tensor:
        """Update every v, and return the mean of all v̂ in float64."""
        total, count = torch.zeros((), dtype=torch.float64), 0
        for param, grad, state, group, _ in everything:
            beta2 = group["betas"][1]
            state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            moment = state["exp_avg_sq"].sum(dtype=torch.float64) / (1 - beta2 ** state["step"])
            total, count = total.to(param.device) + moment, count + param.numel()
        return total / count

    def _move(self, moving: Moving, mean: Tensor) -> None:
        param, grad, state, group, lr = moving
        beta0, beta2 = group["betas"]
        v_hat = state["exp_avg_sq"] / (1 - beta2 ** state["step"])
        # Where no gradient was ever other than 0 the mean is 0 too: then w is ε.
        mean = mean.to(param).clamp_min(torch.finfo(param.dtype).tiny)
        w = (v_hat / mean).mul_(beta0).clamp_(group["eps"], 1)
        state["exp_avg"].lerp_(grad, w)
        state["exp_avg_weight"].lerp_(torch.ones_like(w), w)
        param.addcdiv_(state["exp_avg"], state["exp_avg_weight"], value=-lr)
