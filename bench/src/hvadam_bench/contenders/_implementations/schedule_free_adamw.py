"""Schedule-Free AdamW for PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from hvadam_bench.contenders._implementations._base import Moving, TensorByTensor
from hvadam_bench.contenders._options import require, require_betas, whole


class ScheduleFreeAdamW(TensorByTensor):
    """AdamW that needs no schedule, for what it evaluates is an average.

    The parameters are y, where gradients are taken. Inside `evaluation` they are x, the average of
    the fast iterate z; x is kept nowhere, for y = (1-β₁)z + β₁x.

    γ = lr·min(1, t/T) and c = γ² / Σγ²; v ← β₂v + (1-β₂)g² and v̂ = v / (1-β₂^t);
    z ← z - γ·g / (√v̂ + ε) - γλy; x ← (1-c)x + cz.

    Args:
        params: Parameters or groups of them.
        lr: Learning rate, to be left constant; one to ten times Adam's.
        betas: β₁, above 0, and β₂.
        eps: ε.
        weight_decay: λ.
        warmup_steps: T.

    Example:
        >>> from hvadam_bench.contenders import create
        >>> x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = create("schedule_free_adamw", [x], lr=0.5)
        >>> for _ in range(100):
        ...     x.grad = 2 * x.detach()  # of x²
        ...     optimizer.step()
        >>> with optimizer.evaluation():
        ...     bool(x.abs().max() < 0.1)
        True

    References:
        Defazio et al., The Road Less Scheduled, arXiv:2405.15682, Algorithm 1.

    Differs from the authors' package in that there are no modes to switch: `step` works at once,
    and `evaluation` leaves no trace, where the package computes y anew and moves its last bits. A
    schedule, if there is one after all, enters c as in the paper; the package takes its maximum.
    """

    decay = "decoupled"

    def check(self, group: dict[str, Any]) -> None:
        for name in ("lr", "eps", "weight_decay"):
            require(self.who, name, group[name])
        whole(self.who, "warmup_steps", group["warmup_steps"], 0)
        require_betas(self.who, group["betas"])
        if group["betas"][0] == 0:
            raise ValueError(f"{self.who}: betas[0] must be above 0, or y tells nothing of x.")

    def init_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            # A plain number: loading a checkpoint would round a tensor to the parameter's dtype.
            "weight_sum": 0.0,
            "z": param.detach().clone(),
            "exp_avg_sq": torch.zeros_like(param),
        }

    def update(self, moving: Moving) -> None:
        y, grad, state, group, lr = moving
        beta1, beta2 = group["betas"]
        rate = lr * min(1.0, state["step"] / max(1, group["warmup_steps"]))
        state["weight_sum"] += rate**2
        c = rate**2 / state["weight_sum"] if rate else 0.0

        state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = (state["exp_avg_sq"] / (1 - beta2 ** state["step"])).sqrt_().add_(group["eps"])
        direction = (grad / root).add_(y, alpha=group["weight_decay"])
        # (1-β₁)z + β₁x of the new z and x, in terms of the old y and z
        y.lerp_(state["z"], c).add_(direction, alpha=rate * (beta1 * (1 - c) - 1))
        state["z"].sub_(direction, alpha=rate)

    @contextmanager
    def evaluation(self) -> Iterator[None]:
        """Show the parameters at x; on leaving, those of training come back bit for bit."""
        training: list[tuple[Tensor, Tensor]] = []
        with torch.no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    if self.state.get(param):
                        training.append((param, param.detach().clone()))
                        param.lerp_(self.state[param]["z"], 1 - 1 / group["betas"][0])
        try:
            yield
        finally:
            with torch.no_grad():
                for param, y in training:
                    param.copy_(y)
