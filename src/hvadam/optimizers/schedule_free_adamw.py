"""Schedule-Free AdamW: gradients between a fast iterate and its average, which is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.optim import Optimizer
from torch.optim.optimizer import ParamsT

from hvadam.optimizers._options import require, require_betas
from hvadam.optimizers._search import log_grid
from hvadam.optimizers._spec import Arrays, BadCase, Case, OptimizerSpec


class ScheduleFreeAdamW(Optimizer):
    r"""Schedule-Free AdamW.

    The parameters are :math:`y`, where gradients are taken; :math:`x` is to be evaluated, inside
    :meth:`evaluation`, and kept nowhere, for :math:`y = (1-\beta_1) z + \beta_1 x`.

    .. math::
        \gamma &= \alpha \min(1, t/T), \qquad c = \gamma^2 / \textstyle\sum \gamma^2 \\
        s &\leftarrow \beta_2 s + (1-\beta_2) g^2, \qquad \hat s = s / (1-\beta_2^t) \\
        z &\leftarrow z - \gamma g / (\sqrt{\hat s} + \epsilon) - \gamma \lambda y \\
        x &\leftarrow (1-c) x + c z

    Args:
        params: Parameters or param groups.
        lr: :math:`\alpha`, to be left constant; one to ten times Adam's.
        betas: :math:`\beta_1`, above 0, and :math:`\beta_2`.
        eps: :math:`\epsilon`.
        weight_decay: :math:`\lambda`.
        warmup_steps: :math:`T`.

    Example:
        >>> w = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = ScheduleFreeAdamW([w], lr=0.5)
        >>> for _ in range(20):
        ...     optimizer.zero_grad()
        ...     (w**2).sum().backward()
        ...     optimizer.step()
        >>> with optimizer.evaluation():
        ...     bool((w.abs() < 0.2).all())
        True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 2.5e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        warmup_steps: int = 0,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps}
        super().__init__(
            params, {**defaults, "weight_decay": weight_decay, "warmup_steps": warmup_steps}
        )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with options that are in range."""
        options = {**self.defaults, **param_group}
        for name in ("lr", "eps", "weight_decay", "warmup_steps"):
            require("ScheduleFreeAdamW", name, options[name])
        require_betas("ScheduleFreeAdamW", options["betas"])
        if options["betas"][0] == 0:
            raise ValueError(
                "ScheduleFreeAdamW: betas[0] must be above 0, or y tells nothing of x."
            )
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step, after the closure if there is one."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._step_of(p, p.grad, group)
        return loss

    def _step_of(self, y: torch.Tensor, g: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[y]
        if not state:
            # Plain numbers, which loading a checkpoint does not round to the parameter's dtype.
            state["step"], state["weight_sum"] = 0, 0.0
            state["z"] = y.detach().clone()
            state["exp_avg_sq"] = torch.zeros_like(y)
        z, exp_avg_sq = state["z"], state["exp_avg_sq"]
        beta1, beta2 = group["betas"]
        state["step"] += 1
        rate = float(group["lr"]) * min(1.0, state["step"] / max(1, group["warmup_steps"]))
        state["weight_sum"] += rate**2
        c = rate**2 / state["weight_sum"] if rate else 0.0

        exp_avg_sq.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        root = (exp_avg_sq / (1 - beta2 ** state["step"])).sqrt_().add_(group["eps"])
        direction = (g / root).add_(y, alpha=group["weight_decay"])
        # y = (1-β₁)z + β₁x of the new z and x, in terms of the old y and z
        y.lerp_(z, c).add_(direction, alpha=rate * (beta1 * (1 - c) - 1))
        z.sub_(direction, alpha=rate)

    @contextmanager
    def evaluation(self) -> Iterator[None]:
        """Inside, the parameters are the average x; on leaving, those of training, bit for bit."""
        training: list[tuple[torch.Tensor, torch.Tensor]] = []
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if self.state.get(p):
                        training.append((p, p.detach().clone()))
                        p.lerp_(self.state[p]["z"], 1 - 1 / group["betas"][0])
        try:
            yield
        finally:
            with torch.no_grad():
                for p, y in training:
                    p.copy_(y)


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> ScheduleFreeAdamW:
    return ScheduleFreeAdamW(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    return _sequences(params, grads, options)[0]


def evaluated(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    return _sequences(params, grads, options)[1]


def _sequences(
    params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]
) -> tuple[list[Arrays], list[Arrays]]:
    """y and x after each step, by the paper's first listing, which keeps all three sequences."""
    eps, decay = options["eps"], options["weight_decay"]
    beta1, beta2 = options["betas"]
    x, y, z = ([np.array(p) for p in params] for _ in range(3))
    second = [np.zeros_like(p) for p in params]
    squares = 0.0
    training, averaged = [], []
    for t, step in enumerate(grads, 1):
        rate = options["lr"]
        if options["warmup_steps"]:
            rate *= min(1, t / options["warmup_steps"])
        squares += rate**2
        for i, g in enumerate(step):
            second[i] = beta2 * second[i] + (1 - beta2) * g**2
            second_hat = second[i] / (1 - beta2**t)
            z[i] = z[i] - rate * g / (np.sqrt(second_hat) + eps) - rate * decay * y[i]
            x[i] = (1 - rate**2 / squares) * x[i] + rate**2 / squares * z[i]
            y[i] = (1 - beta1) * z[i] + beta1 * x[i]
        training.append([p.copy() for p in y])
        averaged.append([p.copy() for p in x])
    return training, averaged


SPEC = OptimizerSpec(
    name="schedule_free_adamw",
    paper="arXiv:2405.15682",
    source="ours; in the authors' package an evaluation moves the last bits of the parameters",
    build=build,
    defaults={
        **{"lr": 2.5e-3, "betas": (0.9, 0.999), "eps": 1e-8},
        **{"weight_decay": 0.0, "warmup_steps": 0},
    },
    search={"lr": log_grid(1e-4, 1e-1)},
    oracle=oracle,
    cases=[
        Case({"betas": (0.5, 0.9), "eps": 1e-3, "warmup_steps": 4}),
        Case({"lr": 0.01, "weight_decay": 1.0}),
    ],
    bad=[
        BadCase({"lr": -1.0}, "ScheduleFreeAdamW: lr must be >= 0 and finite, got -1"),
        BadCase({"betas": (0.0, 0.9)}, r"ScheduleFreeAdamW: betas\[0\] must be above 0"),
        BadCase({"betas": (0.9, 1.0)}, r"ScheduleFreeAdamW: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": -1.0}, "ScheduleFreeAdamW: eps must be >= 0"),
        BadCase({"weight_decay": -1.0}, "ScheduleFreeAdamW: weight_decay must be >= 0"),
        BadCase({"warmup_steps": -1}, "ScheduleFreeAdamW: warmup_steps must be >= 0"),
    ],
    evaluation=ScheduleFreeAdamW.evaluation,
    averages=True,
    evaluated=evaluated,
)
