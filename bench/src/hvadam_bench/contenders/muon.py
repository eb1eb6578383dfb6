"""Muon: the momentum of each matrix, orthogonalized; AdamW for all that is not a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build our Muon."""
    from hvadam_bench.contenders._implementations.muon import Muon, by_method

    return Muon(by_method(model, groups), **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr, mu, decay, eps = (options[name] for name in ("lr", "momentum", "weight_decay", "eps"))
    beta1, beta2 = options["betas"]
    theta = [np.array(p) for p in params]
    first, second = ([np.zeros_like(p) for p in params] for _ in range(2))
    trace = []
    for t, step in enumerate(grads, 1):
        for i, g in enumerate(step):
            theta[i] = theta[i] - lr * decay * theta[i]
            if g.ndim >= 2 and 1 < len(g) < g.size:
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
