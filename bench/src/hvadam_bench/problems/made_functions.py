"""Data that a formula makes, always the same, in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def spirals(points: int, turns: float) -> tuple[Tensor, Tensor]:
    """Return points of two spirals around each other, within the unit disc, and whose each is.

    Example:
        >>> points, labels = spirals(4, 1.0)
        >>> points.round(decimals=2).abs().tolist(), labels.tolist()
        ([[0.1, 0.0], [1.0, 0.0], [0.1, 0.0], [1.0, 0.0]], [0.0, 0.0, 1.0, 1.0])
    """
    radii = torch.linspace(0.1, 1, points // 2, dtype=torch.float64)
    angles = torch.linspace(0, 2 * math.pi * turns, points // 2, dtype=torch.float64)
    arm = radii[:, None] * torch.stack([angles.cos(), angles.sin()], 1)
    labels = torch.arange(2, dtype=torch.float64).repeat_interleave(points // 2)
    return torch.cat([arm, -arm]), labels


def waves(points: int, frequencies: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return places in [-1, 1] and Σ sin(πfx)/f over the frequencies f, both (points, 1).

    Example:
        >>> waves(3, [1, 2])[0].tolist()
        [[-1.0], [0.0], [1.0]]
    """
    x = torch.linspace(-1, 1, points, dtype=torch.float64)[:, None]
    return x, torch.stack([torch.sin(math.pi * f * x) / f for f in frequencies]).sum(0)


def low_rank_matrix(size: int, rank: int, condition: float) -> Tensor:
    """Return a square matrix of some rank whose singular values fall from 1 by powers.

    Args:
        size: Of its sides.
        rank: Of the matrix.
        condition: The largest singular value over the smallest that is not 0.
    """
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(size, rank)))[0] for _ in range(2))
    return torch.from_numpy((left * np.geomspace(1, 1 / condition, rank)) @ right.T)


def seen_entries(size: int, share: float) -> Tensor:
    """Return which entries of a square matrix are seen: a fixed draw of a share of them.

    Example:
        >>> seen_entries(10, 0.3).sum().item()
        30
    """
    order = np.random.default_rng(1).permutation(size * size)
    return torch.from_numpy(order.reshape(size, size) < round(share * size * size))
