"""Muon for PyTorch, with AdamW for what is not a matrix."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from hvadam_bench.contenders._implementations._base import Moving, TensorByTensor
from hvadam_bench.contenders._options import one_of, require, require_betas

# The quintic of Keller Jordan's write-up: five rounds take singular values to about 0.7 to 1.2.
QUINTIC = (3.4445, -4.7750, 2.0315)
ROUNDS = 5
SMALLEST_NORM = 1e-7


class Muon(TensorByTensor):
    """The momentum of each matrix, orthogonalized; AdamW for the rest, under one learning rate.

    m ← μm + (1-μ)g, and θ ← θ - lr·λθ - 0.2·√max(rows, columns)·lr·NS(μm + (1-μ)g), where NS brings
    the singular values near 1 by five rounds of Newton-Schulz. Kernels of convolutions count as
    matrices with one row per output channel. The factor makes the step as large as AdamW's, so
    that one learning rate and one decay serve both.

    Args:
        groups: Param groups that say under "method" who moves them, "muon" or "adamw": see
            `by_method`.
        lr: Learning rate, of both.
        momentum: μ, of Muon.
        weight_decay: λ, of both, decoupled.
        betas: β₁ and β₂ of AdamW.
        eps: ε of AdamW.

    Example:
        >>> from hvadam_bench.contenders import create
        >>> x = torch.nn.Parameter(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
        >>> optimizer = create("muon", [x], lr=0.1)
        >>> for _ in range(100):
        ...     x.grad = 2 * x.detach()  # of ‖x‖²
        ...     optimizer.step()
        >>> bool(x.abs().max() < 0.1)
        True

    References:
        Jordan et al., Muon: An optimizer for hidden layers in neural networks,
        https://kellerjordan.github.io/posts/muon; Liu et al., Muon is Scalable for LLM Training,
        arXiv:2502.16982, equation 4 for the factor.

    Differs from ``torch.optim.Muon(adjust_lr_fn="match_rms_adamw")`` in that it takes parameters of
    any shape, and in that NS runs in the parameter's dtype rather than in bfloat16.
    """

    decay = "decoupled"

    def check(self, group: dict[str, Any]) -> None:
        for name in ("lr", "weight_decay", "eps"):
            require(self.who, name, group[name])
        require(self.who, "momentum", group["momentum"], 0, 1)
        require_betas(self.who, group["betas"])
        one_of(self.who, "a group's method", group.get("method"), ("muon", "adamw"))

    def init_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if group["method"] == "muon":
            return {"momentum_buffer": torch.zeros_like(param)}
        return {"exp_avg": torch.zeros_like(param), "exp_avg_sq": torch.zeros_like(param)}

    def update(self, moving: Moving) -> None:
        param, grad, state, group, lr = moving
        param.mul_(1 - lr * group["weight_decay"])
        if group["method"] == "muon":
            buffer = state["momentum_buffer"].lerp_(grad, 1 - group["momentum"])
            ahead = grad.lerp(buffer, group["momentum"]).flatten(1)  # Nesterov
            rate = 0.2 * math.sqrt(max(ahead.shape)) * lr
            param.sub_(orthogonalized(ahead).reshape(param.shape), alpha=rate)
        else:
            (beta1, beta2), t = group["betas"], state["step"]
            state["exp_avg"].lerp_(grad, 1 - beta1)
            state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            root = (state["exp_avg_sq"] / (1 - beta2**t)).sqrt_().add_(group["eps"])
            param.addcdiv_(state["exp_avg"], root, value=-lr / (1 - beta1**t))


def orthogonalized(matrix: Tensor) -> Tensor:
    """Return the matrix with its singular values brought near 1.

    Example:
        >>> sigma = torch.linalg.svdvals(orthogonalized(torch.diag(torch.tensor([5.0, 0.1]))))
        >>> bool(sigma.min() > 0.6 and sigma.max() < 1.3)
        True
    """
    a, b, c = QUINTIC
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    x = wide / wide.norm().clamp(min=SMALLEST_NORM)
    for _ in range(ROUNDS):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x if wide is matrix else x.T


def by_method(model: nn.Module | None, groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Split groups: matrices are Muon's, but for a model's embeddings and its head.

    The head is the last linear layer, in the order in which the model registered them. A tensor is
    a matrix if, with one row per entry of its first axis, it has rows and columns, more than one
    of each: class tokens and position embeddings of shape (1, n, d) are not.
    """
    # Not `module.weight`, which a parametrization computes anew each time.
    outer = {id(p) for module in _embeddings_and_head(model) for p in module.parameters()}

    def is_matrix(p: Tensor) -> bool:
        return p.ndim >= 2 and min(len(p), p.numel() // max(1, len(p))) > 1 and id(p) not in outer

    split = []
    for group in groups:
        for method in ("muon", "adamw"):
            members = [p for p in group["params"] if is_matrix(p) == (method == "muon")]
            if members:
                split.append({**group, "params": members, "method": method})
    return split


def _embeddings_and_head(model: nn.Module | None) -> Iterator[nn.Module]:
    modules = list(model.modules()) if model is not None else []
    yield from (m for m in modules if isinstance(m, (nn.Embedding, nn.EmbeddingBag)))
    yield from [m for m in modules if isinstance(m, nn.Linear)][-1:]
