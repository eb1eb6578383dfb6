"""Muon: the momentum of each matrix, orthogonalized; AdamW for all that is not a matrix.

m ← μm + (1-μ)g, and θ ← θ - lr·λθ - 0.2·√max(rows, columns)·lr·NS(μm + (1-μ)g), where NS brings the
singular values near 1 by five rounds of Newton-Schulz. Kernels of convolutions count as matrices
with one row per output channel. The factor makes the step as large as AdamW's, so that one learning
rate and one decay serve both (arXiv:2502.16982, equation 4).

It differs from ``torch.optim.Muon(adjust_lr_fn="match_rms_adamw")`` in that it takes parameters of
any shape, and in that NS runs in the parameter's dtype rather than in bfloat16.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hvadam_bench.contenders._options import one_of, require
from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, stepping, tensor_by_tensor

# The quintic of Keller Jordan's write-up: five rounds take singular values to about 0.7 to 1.2.
QUINTIC = (3.4445, -4.7750, 2.0315)
ROUNDS = 5
SMALLEST_NORM = 1e-7


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build Muon, whose groups say under "method" who moves them, "muon" or "adamw".

    Matrices are Muon's, but for a model's embeddings and its head, which is the last linear layer,
    in the order in which the model registered them. A tensor is a matrix if, with one row per entry
    of its first axis, it has rows and columns, more than one of each: class tokens and position
    embeddings of shape (1, n, d) are not.
    """
    # Not `module.weight`, which a parametrization computes anew each time.
    outer = {id(p) for module in _embeddings_and_head(model) for p in module.parameters()}

    def is_matrix(p: Any) -> bool:
        return p.ndim >= 2 and min(len(p), p.numel() // max(1, len(p))) > 1 and id(p) not in outer

    split = []
    for group in groups:
        for method in ("muon", "adamw"):
            members = [p for p in group["params"] if is_matrix(p) == (method == "muon")]
            if members:
                split.append({**group, "params": members, "method": method})
    return _build(model, split, options)


def _embeddings_and_head(model: Any) -> list[Any]:
    from torch import nn

    modules = list(model.modules()) if model is not None else []
    embeddings = [m for m in modules if isinstance(m, (nn.Embedding, nn.EmbeddingBag))]
    return embeddings + [m for m in modules if isinstance(m, nn.Linear)][-1:]


def update(p: Any, g: Any, state: Any, group: Any, lr: float) -> None:
    """Take one step of a tensor."""
    p.mul_(1 - lr * group["weight_decay"])
    m, t = state["exp_avg"], state["step"]
    if group["method"] == "muon":
        ahead = g.lerp(m.lerp_(g, 1 - group["momentum"]), group["momentum"]).flatten(1)  # Nesterov
        rate = 0.2 * math.sqrt(max(ahead.shape)) * lr
        p.sub_(orthogonalized(ahead).reshape(p.shape), alpha=rate)
        return
    beta1, beta2 = group["betas"]
    if t == 1:
        state["exp_avg_sq"] = m.clone()  # of zeros
    second = state["exp_avg_sq"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
    root = (second / (1 - beta2**t)).sqrt_().add_(group["eps"])
    p.addcdiv_(m.lerp_(g, 1 - beta1), root, value=-lr / (1 - beta1**t))


def orthogonalized(matrix: Any) -> Any:
    """Return the matrix with its singular values brought near 1.

    Example:
        >>> import torch
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


_build = stepping(
    "Muon",
    update,
    "exp_avg",
    decay="decoupled",
    eps=require,
    method=partial(one_of, choices=("muon", "adamw")),
)


@tensor_by_tensor
def oracle(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield a tensor after each step of the paper's update."""
    lr, mu, decay, eps = (options[name] for name in ("lr", "momentum", "weight_decay", "eps"))
    beta1, beta2 = options["betas"]
    first, second = (np.zeros_like(theta) for _ in range(2))
    for t, g in enumerate(grads, 1):
        theta = theta - lr * decay * theta
        if g.ndim >= 2 and 1 < len(g) < g.size:
            # the write-up's sum instead of an average: NS does not see the scale
            first = mu * first + g
            ahead = (g + mu * first).reshape(len(g), -1)
            scale = 0.2 * np.sqrt(max(ahead.shape))
            theta = theta - lr * scale * _newton_schulz(ahead).reshape(g.shape)
        else:
            first = beta1 * first + (1 - beta1) * g
            second = beta2 * second + (1 - beta2) * g**2
            root = np.sqrt(second / (1 - beta2**t))
            theta = theta - lr * first / (1 - beta1**t) / (root + eps)
        yield theta


def _newton_schulz(matrix: np.ndarray) -> np.ndarray:
    """Iterate φ(σ) = 3.4445σ - 4.7750σ³ + 2.0315σ⁵ on the singular values."""
    left, sigma, right = np.linalg.svd(matrix, full_matrices=False)
    sigma = sigma / np.sqrt((sigma**2).sum())
    for _ in range(5):
        sigma = 3.4445 * sigma - 4.7750 * sigma**3 + 2.0315 * sigma**5
    return (left * sigma) @ right


SPEC = OptimizerSpec(
    name="muon",
    label="Muon",
    paper="https://kellerjordan.github.io/posts/muon, with the scale of arXiv:2502.16982",
    source="ours; torch.optim.Muon has the same update but refuses what is not a plain matrix",
    build=build,
    defaults={
        **{"lr": 1e-3, "momentum": 0.95, "weight_decay": 0.1},
        **{"betas": (0.9, 0.95), "eps": 1e-8},
    },
    oracle=oracle,
    decay="decoupled",
    cases=[
        Case({"momentum": 0.5, "weight_decay": 0.0}),
        Case({"lr": 0.01, "betas": (0.5, 0.9), "eps": 1e-3}),
    ],
    elementwise=False,
    tolerance=1e-10,
)
