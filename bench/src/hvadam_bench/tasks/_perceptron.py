"""Perceptrons of any widths, smooth throughout."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from torch import nn


def tanh_mlp(widths: Sequence[int]) -> nn.Sequential:
    """Build linear maps with tanh between them; Xavier's normal weights, zero biases.

    Example:
        >>> [tuple(p.shape) for p in tanh_mlp([2, 5, 1]).parameters()]
        [(5, 2), (5,), (1, 5), (1,)]
    """
    layers: list[nn.Module] = []
    for inner, outer in itertools.pairwise(widths):
        linear = nn.Linear(inner, outer)
        nn.init.xavier_normal_(linear.weight)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.Tanh()]
    return nn.Sequential(*layers[:-1])
