"""Muon: the momentum of each matrix, orthogonalized; AdamW for all that is not a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, tensor_by_tensor


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build our Muon."""
    from hvadam_bench.contenders._implementations.muon import Muon, by_method

    return Muon(by_method(model, groups), **options)


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
