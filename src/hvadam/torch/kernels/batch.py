"""What a kernel is handed: tensors of one param group, one hidden vector, one dtype and device.

Legend, as everywhere in the kernels: theta parameters, g gradients, m their average, v the hidden
vector, s the preconditioner; bias1 = 1 - beta1**t and bias2 = 1 - beta2**t of each tensor.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Options(NamedTuple):
    """A param group's hyper-parameters as a kernel reads them, once a step."""

    lr: float | Tensor
    beta1: float
    beta2: float
    eps: float
    gamma: float
    decay: float  # decoupled
    coupled_decay: float
    hidden_scale: float
    adam: bool  # preconditioner="adam"
    low: Any  # a float or a tensor; None without bounds
    high: Any
    maximize: bool

    @classmethod
    def of(cls, group: dict[str, Any]) -> Options:
        """Read a param group."""
        lr = number(group["lr"])
        coupled = group["weight_decay_mode"] == "coupled"
        low, high = _box(group["bounds"], lr)
        return cls(
            lr=lr,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            eps=group["eps"],
            gamma=group["gamma"],
            decay=0.0 if coupled else group["weight_decay"],
            coupled_decay=group["weight_decay"] if coupled else 0.0,
            hidden_scale=group["hidden_scale"],
            adam=group["preconditioner"] == "adam",
            low=low,
            high=high,
            maximize=group["maximize"],
        )


class Batch(NamedTuple):
    """Tensors that one kernel call updates; the lists run in parallel."""

    theta: list[Tensor]
    g: list[Tensor]
    m: list[Tensor]
    v: list[Tensor]
    s: list[Tensor]
    bias1: list[Any]  # floats, or 0-dim tensors
    bias2: list[Any]
    options: Options

    def append(
        self,
        theta: Tensor,
        g: Tensor,
        m: Tensor,
        v: Tensor,
        s: Tensor,
        bias1: float | Tensor,
        bias2: float | Tensor,
    ) -> None:
        """Add one tensor; complex ones as their real and imaginary parts."""
        if theta.is_complex():
            theta, g, m, v, s = (torch.view_as_real(x) for x in (theta, g, m, v, s))
        self.theta.append(theta)
        self.g.append(g)
        self.m.append(m)
        self.v.append(v)
        self.s.append(s)
        self.bias1.append(bias1)
        self.bias2.append(bias2)


def number(x: float | Tensor) -> float | Tensor:
    """A Python float where reading one is free, else the 0-dim tensor itself.

    On a CPU a float is the fastest operand. On a device reading it would wait for the queue, and
    under ``torch.compile`` it would be baked into the graph.
    """
    if not isinstance(x, Tensor):
        return float(x)
    if torch.compiler.is_compiling() or x.device.type != "cpu":
        return x.reshape(())
    return x.item()


def _box(bounds: tuple[float, float] | None, lr: float | Tensor) -> tuple[Any, Any]:
    """The box to project onto. A step with lr 0 moves nothing, so it does not project either."""
    if bounds is None:
        return None, None
    low, high = bounds
    if isinstance(lr, Tensor):
        still = lr == 0
        return (
            torch.where(still, -math.inf, torch.full_like(lr, low)),
            torch.where(still, math.inf, torch.full_like(lr, high)),
        )
    return (low, high) if lr != 0 else (None, None)
