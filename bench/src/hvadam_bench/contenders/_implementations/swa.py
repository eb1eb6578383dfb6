"""Stochastic weight averaging for PyTorch, as an optimizer."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from typing import Any

from hvadam_bench.contenders._implementations._wrapper import Wrapper, showing
from hvadam_bench.contenders._options import require, whole


class SWA(Wrapper):
    """SGD or Adam, evaluated at the plain average of the weights on the way.

    From step s = start·horizon on, after steps s, s + every, s + 2·every and so on, the average
    takes in θ: θ̄ ← θ̄ + (θ - θ̄) / n with n the count so far. Training itself is that of the inner
    optimizer, at the scheduler's learning rate or, with `swa_lr`, at one of its own from s on.
    Batch-norm statistics have to be estimated for θ̄: see `torch.optim.swa_utils.update_bn`.

    Args:
        params: Parameters or groups of them.
        lr: Learning rate of the inner optimizer.
        horizon: Steps of the whole training; with 0 all weights are averaged.
        start: The share of them after which averaging begins.
        every: Steps from one averaging to the next; the paper has an epoch's worth.
        swa_lr: Learning rate while averaging; None for the scheduler's.
        anneal: The share of the horizon over which the rate goes there along half a cosine, as in
            `torch.optim.swa_utils.SWALR`, though step by step and not epoch by epoch.
        inner: "sgd" (heavy-ball) or "adam".
        momentum: Of the inner SGD.
        betas: Of the inner Adam.
        eps: Of the inner Adam.
        weight_decay: Coupled (L2), of the inner optimizer.

    Example:
        >>> from hvadam_bench.contenders import create
        >>> import torch
        >>> x = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> optimizer = create("swa", [x], lr=0.1, horizon=100, start=0.5)
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

    def check(self, group: dict[str, Any]) -> None:
        super().check(group)
        whole(self.who, "horizon", group["horizon"], 0)
        require(self.who, "start", group["start"], 0, 1)
        whole(self.who, "every", group["every"], 1)
        if group["swa_lr"] is not None:
            require(self.who, "swa_lr", group["swa_lr"])
        require(self.who, "anneal", group["anneal"], 0, 1)

    def rate(self, group: dict[str, Any]) -> float:
        done = max((self.state[p]["step"] for p in group["params"] if p in self.state), default=0)
        since = done - _first(group)
        if group["swa_lr"] is None or since < 0:
            return group["lr"]
        annealing = group["anneal"] * group["horizon"]
        share = min(1.0, since / annealing) if annealing else 1.0
        weight = (1 - math.cos(math.pi * share)) / 2
        return weight * group["swa_lr"] + (1 - weight) * group["lr"]

    def advance(self) -> None:
        moving = self.with_gradient()
        for p, _ in moving:
            if not self.state[p]:
                self.state[p].update(step=0, averaged=0, inner={})
        self.step_inside({p: self.state[p]["inner"] for p, _ in moving})
        for p, group in moving:
            state = self.state[p]
            state["step"] += 1
            since = state["step"] - _first(group)
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


def _first(group: dict[str, Any]) -> int:
    """Return the step that is averaged first."""
    return max(1, round(group["start"] * group["horizon"]))
