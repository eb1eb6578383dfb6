"""Lion: the sign of an interpolated average, with decoupled decay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from hvadam.optimizers._options import require, require_betas
from hvadam.optimizers._search import log_grid
from hvadam.optimizers._spec import Arrays, BadCase, Case, OptimizerSpec


class Lion(Optimizer):
    r"""Lion, evolved sign momentum.

    .. math::
        \theta &\leftarrow \theta
            - \alpha (\operatorname{sign}(\beta_1 m + (1-\beta_1) g) + \lambda \theta) \\
        m &\leftarrow \beta_2 m + (1-\beta_2) g

    Args:
        params: Parameters or param groups.
        lr: :math:`\alpha`; three to ten times below Adam's, for every coordinate moves by it.
        betas: :math:`\beta_1, \beta_2`.
        weight_decay: :math:`\lambda`; three to ten times above AdamW's.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        >>> w.grad = torch.tensor([0.3, -7.0])
        >>> Lion([w], lr=0.5).step()
        >>> w.tolist()
        [0.5, -1.5]
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with options that are in range."""
        options = {**self.defaults, **param_group}
        require("Lion", "lr", options["lr"])
        require_betas("Lion", options["betas"])
        require("Lion", "weight_decay", options["weight_decay"])
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step, after the closure if there is one."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            for p in params:
                if not self.state[p]:
                    self.state[p]["exp_avg"] = torch.zeros_like(p)
            grads = [p.grad for p in params]
            exp_avgs = [self.state[p]["exp_avg"] for p in params]
            beta1, beta2 = group["betas"]
            updates = torch._foreach_lerp(exp_avgs, grads, 1 - beta1)
            torch._foreach_sign_(updates)
            torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(params, updates, alpha=-group["lr"])
            torch._foreach_lerp_(exp_avgs, grads, 1 - beta2)
        return loss


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Lion:
    return Lion(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    lr, decay = options["lr"], options["weight_decay"]
    beta1, beta2 = options["betas"]
    theta = [np.array(p) for p in params]
    m = [np.zeros_like(p) for p in params]
    trace = []
    for step in grads:
        for i, g in enumerate(step):
            update = np.sign(beta1 * m[i] + (1 - beta1) * g)
            theta[i] = theta[i] - lr * (update + decay * theta[i])
            m[i] = beta2 * m[i] + (1 - beta2) * g
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="lion",
    paper="arXiv:2302.06675",
    source="ours; torch has none",
    build=build,
    defaults={"lr": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0.0},
    search={"lr": log_grid(3e-6, 3e-3)},
    oracle=oracle,
    cases=[Case({"betas": (0.5, 0.9)}), Case({"lr": 0.01, "weight_decay": 1.0})],
    bad=[
        BadCase({"lr": -1.0}, "Lion: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (1.0, 0.99)}, r"Lion: betas\[0\] must be in \[0, 1\), got 1"),
        BadCase({"betas": 0.9}, "Lion: betas must be a pair of numbers, got 0.9"),
        BadCase({"weight_decay": -1.0}, "Lion: weight_decay must be >= 0"),
    ],
)
