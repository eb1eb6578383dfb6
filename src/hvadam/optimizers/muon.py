"""Muon: the momentum of each matrix, orthogonalized; AdamW for all that is not a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.adamw import adamw

from hvadam.optimizers._options import require, require_betas
from hvadam.optimizers._search import log_grid
from hvadam.optimizers._spec import Arrays, BadCase, Case, OptimizerSpec

# The quintic of Keller Jordan's write-up: five rounds take singular values to about 0.7 to 1.2.
QUINTIC = (3.4445, -4.7750, 2.0315)
ROUNDS = 5
SMALLEST_NORM = 1e-7


class Muon(Optimizer):
    r"""Muon for matrices and AdamW for the rest, under one learning rate.

    For a matrix of :math:`r` rows and :math:`c` columns

    .. math::
        m &\leftarrow \mu m + (1-\mu) g \\
        \theta &\leftarrow \theta - \alpha \lambda \theta
            - 0.2 \sqrt{\max(r, c)}\, \alpha \operatorname{NS}(\mu m + (1-\mu) g)

    where NS brings the singular values near 1 by five rounds of Newton-Schulz. Kernels of
    convolutions count as matrices with one row per output channel. The factor before NS is that of
    arXiv:2502.16982, which makes the step as large as AdamW's, so that one learning rate and one
    decay serve both.

    Args:
        groups: Param groups that say under "method" who moves them, "muon" or "adamw".
        lr: :math:`\alpha`, of both.
        momentum: :math:`\mu`, of Muon.
        weight_decay: :math:`\lambda`, of both, decoupled.
        betas: AdamW's averages.
        eps: AdamW's.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        lr: float = 1e-3,
        momentum: float = 0.95,
        weight_decay: float = 0.1,
        betas: tuple[float, float] = (0.9, 0.95),
        eps: float = 1e-8,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(groups, {**defaults, "betas": betas, "eps": eps})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters that say who moves them, with options that are in range."""
        options = {**self.defaults, **param_group}
        for name in ("lr", "weight_decay", "eps"):
            require("Muon", name, options[name])
        require("Muon", "momentum", options["momentum"], 0.0, 1.0)
        require_betas("Muon", options["betas"])
        if options.get("method") not in ("muon", "adamw"):
            raise ValueError(
                'Muon: a param group must have "method", "muon" or "adamw", '
                f"got {options.get('method')!r}."
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
            params = [p for p in group["params"] if p.grad is not None]
            if group["method"] == "muon":
                self._orthogonal_step(params, group)
            elif params:
                self._adamw_step(params, group)
        return loss

    def _orthogonal_step(self, params: list[Tensor], group: dict[str, Any]) -> None:
        lr, momentum = group["lr"], group["momentum"]
        for p in params:
            state = self.state[p]
            if not state:
                state["momentum_buffer"] = torch.zeros_like(p)
            buffer = state["momentum_buffer"].lerp_(p.grad, 1 - momentum)
            ahead = p.grad.lerp(buffer, momentum).flatten(1)  # Nesterov
            update = orthogonalized(ahead).mul_(0.2 * math.sqrt(max(ahead.shape)))
            p.mul_(1 - lr * group["weight_decay"]).add_(update.view(p.shape), alpha=-lr)

    def _adamw_step(self, params: list[Tensor], group: dict[str, Any]) -> None:
        for p in params:
            if not self.state[p]:
                self.state[p]["step"] = torch.zeros((), dtype=torch.float32)
                self.state[p]["exp_avg"] = torch.zeros_like(p)
                self.state[p]["exp_avg_sq"] = torch.zeros_like(p)
        states = [self.state[p] for p in params]
        adamw(
            params,
            [p.grad for p in params if p.grad is not None],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )


def orthogonalized(matrix: Tensor) -> Tensor:
    """The matrix with its singular values brought near 1, in its own dtype.

    Example:
        >>> singular = torch.linalg.svdvals(orthogonalized(torch.diag(torch.tensor([5.0, 0.1]))))
        >>> bool((singular > 0.5).all() and (singular < 1.3).all())
        True
    """
    a, b, c = QUINTIC
    wide = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = wide / wide.norm().clamp(min=SMALLEST_NORM)
    for _ in range(ROUNDS):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.T if wide is not matrix else x).contiguous()


def build(model: nn.Module | None, groups: list[dict[str, Any]], options: dict[str, Any]) -> Muon:
    """Give every matrix to Muon, but of a model's embeddings and last linear layer, the head.

    A tensor is a matrix if, one row per entry of its first axis, it has more than one row and more
    than one column: class tokens and position embeddings of shape (1, n, d) are not.
    """
    outer = {id(module.weight) for module in _input_and_output_layers(model)}

    def is_matrix(p: Tensor) -> bool:
        return p.ndim >= 2 and min(len(p), p[0].numel()) > 1 and id(p) not in outer

    split = []
    for group in groups:
        for method, wanted in (("muon", True), ("adamw", False)):
            members = [p for p in group["params"] if is_matrix(p) == wanted]
            if members:
                split.append({**group, "params": members, "method": method})
    return Muon(split, **options)


def _input_and_output_layers(model: nn.Module | None) -> list[Any]:
    modules = list(model.modules()) if model is not None else []
    embeddings = [m for m in modules if isinstance(m, (nn.Embedding, nn.EmbeddingBag))]
    return embeddings + [m for m in modules if isinstance(m, nn.Linear)][-1:]


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    lr, mu, decay, eps = (options[name] for name in ("lr", "momentum", "weight_decay", "eps"))
    beta1, beta2 = options["betas"]
    theta = [np.array(p) for p in params]
    first, second = ([np.zeros_like(p) for p in params] for _ in range(2))
    trace = []
    for t, step in enumerate(grads, 1):
        for i, g in enumerate(step):
            theta[i] = theta[i] - lr * decay * theta[i]
            if g.ndim >= 2:
                # the write-up's sum instead of an average: NS does not see the scale
                first[i] = mu * first[i] + g
                ahead = (g + mu * first[i]).reshape(len(g), -1)
                scale = 0.2 * np.sqrt(max(ahead.shape))
                theta[i] = theta[i] - lr * scale * _newton_schulz(ahead).reshape(g.shape)
            else:
                first[i] = beta1 * first[i] + (1 - beta1) * g
                second[i] = beta2 * second[i] + (1 - beta2) * g**2
                root = np.sqrt(second[i] / (1 - beta2**t))
                theta[i] = theta[i] - lr * first[i] / (1 - beta1**t) / (root + eps)
        trace.append([p.copy() for p in theta])
    return trace


def _newton_schulz(matrix: np.ndarray) -> np.ndarray:
    """On the singular values, where each round is φ(σ) = 3.4445σ - 4.7750σ³ + 2.0315σ⁵."""
    left, sigma, right = np.linalg.svd(matrix, full_matrices=False)
    sigma = sigma / np.sqrt((sigma**2).sum())
    for _ in range(5):
        sigma = 3.4445 * sigma - 4.7750 * sigma**3 + 2.0315 * sigma**5
    return (left * sigma) @ right


SPEC = OptimizerSpec(
    name="muon",
    paper="https://kellerjordan.github.io/posts/muon, with the scale of arXiv:2502.16982",
    source="ours; torch.optim.Muon has the same update but refuses what is not a plain matrix",
    build=build,
    defaults={
        **{"lr": 1e-3, "momentum": 0.95, "weight_decay": 0.1},
        **{"betas": (0.9, 0.95), "eps": 1e-8},
    },
    search={"lr": log_grid(3e-5, 3e-2)},
    oracle=oracle,
    cases=[
        Case({"momentum": 0.5, "weight_decay": 0.0}),
        Case({"lr": 0.01, "betas": (0.5, 0.9), "eps": 1e-3}),
    ],
    bad=[
        BadCase({"lr": -1.0}, "Muon: lr must be >= 0 and finite, got -1"),
        BadCase({"momentum": 1.0}, r"Muon: momentum must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"Muon: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"weight_decay": -1.0}, "Muon: weight_decay must be >= 0"),
        BadCase({"eps": -1.0}, "Muon: eps must be >= 0"),
    ],
    elementwise=False,
    tolerance=1e-10,
)
