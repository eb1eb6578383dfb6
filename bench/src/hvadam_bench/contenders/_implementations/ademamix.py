"""AdEMAMix for PyTorch."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from hvadam_bench.contenders._implementations._base import Moving, TensorByTensor
from hvadam_bench.contenders._options import require, whole


class AdEMAMix(TensorByTensor):
    """AdamW that follows old gradients too, through a second and far slower average.

    m₁ ← β₁m₁ + (1-β₁)g, m₂ ← β₃(t)m₂ + (1-β₃(t))g, ν ← β₂ν + (1-β₂)g², and
    θ ← θ - lr·((m̂₁ + α(t)m₂) / (√ν̂ + ε) + λθ); m₂ has no bias correction. Over the first T steps
    α(t) rises linearly from 0 to α, and β₃(t) from β₁ to β₃ so that 1/ln β₃(t) is linear.

    Args:
        params: Parameters or groups of them.
        lr: Learning rate.
        betas: β₁, above 0, β₂ and β₃, at least β₁.
        eps: ε.
        weight_decay: λ, decoupled.
        alpha: α.
        horizon: T, which the paper sets to the length of the run; 0 for no schedules.

    Example:
        >>> from hvadam_bench.contenders import create
        >>> x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = create("ademamix", [x], lr=0.1)
        >>> for _ in range(200):
        ...     x.grad = 2 * x.detach()  # of x²
        ...     optimizer.step()
        >>> bool(x.abs().max() < 0.1)
        True

    References:
        Pagliardini, Ablin and Grangier, The AdEMAMix Optimizer: Better, Faster, Older,
        arXiv:2409.03137, Algorithm 1 and its schedulers.
    """

    decay = "decoupled"

    def check(self, group: dict[str, Any]) -> None:
        for name in ("lr", "eps", "weight_decay", "alpha"):
            require(self.who, name, group[name])
        whole(self.who, "horizon", group["horizon"], 0)
        betas = group["betas"]
        if not isinstance(betas, (tuple, list)) or len(betas) != 3:
            raise ValueError(f"{self.who}: betas must be three numbers, got {betas!r}.")
        for i, beta in enumerate(betas):
            require(self.who, f"betas[{i}]", beta, 0.0, 1.0)
        if betas[0] == 0:
            raise ValueError(f"{self.who}: betas[0] must be in (0, 1), got 0.")
        if betas[2] < betas[0]:
            raise ValueError(
                f"{self.who}: betas[2] must be at least betas[0], {betas[0]:g}, got {betas[2]:g}."
            )

    def init_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        names = ("exp_avg", "exp_avg_slow", "exp_avg_sq")
        return {name: torch.zeros_like(param) for name in names}

    def update(self, moving: Moving) -> None:
        param, grad, state, group, lr = moving
        (beta1, beta2, beta3), t = group["betas"], state["step"]
        done = min(1.0, t / group["horizon"]) if group["horizon"] else 1.0
        slow_beta = _between(beta1, beta3, done)
        fast, slow, second = (state[n] for n in ("exp_avg", "exp_avg_slow", "exp_avg_sq"))
        fast.mul_(beta1).add_(grad, alpha=1 - beta1)
        slow.mul_(slow_beta).add_(grad, alpha=1 - slow_beta)
        second.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = second.sqrt().div_(math.sqrt(1 - beta2**t)).add_(group["eps"])
        both = (fast / (1 - beta1**t)).add_(slow, alpha=done * group["alpha"])
        param.mul_(1 - lr * group["weight_decay"]).addcdiv_(both, root, value=-lr)


def _between(start: float, end: float, done: float) -> float:
    """Return a decay rate whose memory, -1/ln β, lies a share of the way between two others."""
    if done == 1:
        return end
    return math.exp(1 / ((1 - done) / math.log(start) + done / math.log(end)))
