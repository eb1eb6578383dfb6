"""What a kernel is handed: tensors of one param group that one call can take together.

Legend, as everywhere in the kernels: theta parameters, g gradients, m their average, v the hidden
vector, s the preconditioner; bias1 = 1 - beta1**t and bias2 = 1 - beta2**t of each tensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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


class Columns(NamedTuple):
    """Parameters with a gradient, and their state; the lists run in parallel."""

    theta: list[Tensor]
    g: list[Tensor]
    m: list[Tensor]
    v: list[Tensor]
    s: list[Tensor]
    step: list[Tensor]

    def take(self, indices: Sequence[int]) -> Columns:
        """Some of the rows."""
        return Columns(*([column[i] for i in indices] for column in self))

    def as_real(self) -> Columns:
        """Complex tensors as their real and imaginary parts."""
        if not any(theta.is_complex() for theta in self.theta):
            return self
        return Columns(*([_as_real(x) for x in column] for column in self))


class Batch(NamedTuple):
    """Tensors that one kernel call updates.

    The portable kernels are handed batches of one hidden vector, dtype and device.
    """

    tensors: Columns
    scopes: Sequence[int]  # the hidden vector of each tensor
    options: Options
    table: Any = None  # the native kernel's own description of the tensors

    def count_step(self) -> None:
        """Advance the tensors' step counters."""
        torch._foreach_add_(self.tensors.step, 1)

    def bias_corrections(self) -> tuple[list[Any], list[Any]]:
        """1 - beta**t of each tensor, in double: 1 - 0.999f would be off by 1e-5."""
        steps, o = self.tensors.step, self.options
        if isinstance(number(steps[0]), Tensor):
            t, dtype = torch.stack(steps).double(), self.tensors.m[0].dtype
            bias1, bias2 = ((1.0 - beta**t).to(dtype) for beta in (o.beta1, o.beta2))
            return list(bias1.unbind()), list(bias2.unbind())
        counts = [t.item() for t in steps]
        bias = {t: (1.0 - o.beta1**t, 1.0 - o.beta2**t) for t in set(counts)}
        return [bias[t][0] for t in counts], [bias[t][1] for t in counts]


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


def _as_real(x: Tensor) -> Tensor:
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x


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
