"""A matrix as the product of two thin ones."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Factors(nn.Module):
    """Two thin matrices, whose product's entries start about as large as 1 / √(rows columns)."""

    def __init__(self, rows: int, columns: int, rank: int) -> None:
        super().__init__()
        scale = (rows * columns * rank) ** -0.25
        self.left = nn.Parameter(scale * torch.randn(rows, rank))
        self.right = nn.Parameter(scale * torch.randn(columns, rank))

    def forward(self) -> Tensor:
        """Return the product."""
        return self.left @ self.right.T
