"""Stochastic weight averaging for PyTorch, as an optimizer."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from torch.optim.optimizer import ParamsT

from hvadam_bench.contenders._implementations._wrapper import Wrapper, showing
from hvadam_bench.contenders._options import whole


class SWA(Wrapper):
    """SGD or Adam, evaluated at the plain average of the weights on the way.

    After step t, for t = start, start + every, start + 2·every and so on, the average takes in θ:
    θ̄ ← θ̄ + (θ - θ̄) / n with n the count so far. Training itself is that of the inner optimizer;
    the constant or cyclical learning rate of the paper is the scheduler's affair. Batch-norm
    statistics have to be estimated for θ̄: see `torch.optim.swa_utils.update_bn`.

    Args:
        params: Parameters or groups of them.
        lr: Learning rate of the inner optimizer.
        start: The first step to average. The paper starts after three quarters of the training,
            which only the caller can count.
        every: Steps from one averaging to the next; the paper has an epoch's worth.
        inner: "sgd" (heavy-ball) or "adam".
        momentum: Of the inner SGD.
        betas: Of the inner Adam.
        eps: Of the inner Adam.
        weight_decay: Coupled (L2), of the inner optimizer.

    Example:
        >>> import torch
        >>> x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = SWA([x], lr=0.1, start=50)
        >>> for _ in range(100):
        ...     x.grad = 2 * x.detach()  # of x²
        ...     optimizer.step()
        >>> with optimizer.evaluation():
        ...     bool(x.abs().max() < 0.1)
        True

    References:
        Izmailov et al., Averaging Weights Leads to Wider Optima and Better Generalization,
        arXiv:1803.05407, Algorithm 1.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 0.1,
        start: int = 1,
        every: int = 1,
        inner: str = "sgd",
        momentum: float = 0.9,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(
            params, lr, inner, momentum, betas, eps, weight_decay, start=start, every=every
        )

    def check(self, group: dict[str, Any]) -> None:
        super().check(group)
        whole(self.who, "start", group["start"], 1)
        whole(self.who, "every", group["every"], 1)

    def advance(self) -> None:
        moving = self.with_gradient()
        for p, _ in moving:
            if not self.state[p]:
                self.state[p].update(step=0, averaged=0, inner={})
        self.step_inside({p: self.state[p]["inner"] for p, _ in moving})
        for p, group in moving:
            state = self.state[p]
            state["step"] += 1
            since = state["step"] - group["start"]
            if since < 0 or since % group["every"]:
                continue
            state["averaged"] += 1
            if state["averaged"] == 1:
                state["average"] = p.detach().clone()
            else:
                state["average"].lerp_(p, 1 / state["averaged"])

    def evaluation(self) -> AbstractContextManager[None]:
        """Return a context in which the parameters are the average, once there is one."""
        return showing({p: s["average"] for p, s in self.state.items() if "average" in s})
