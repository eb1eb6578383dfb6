"""A coordinate network of sines, after Sitzmann et al. (arXiv:2006.09661)."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn


class Siren(nn.Module):
    """Hidden layers sin(ω(Wx + b)) from a place to a value, and a linear layer at the end.

    Weights start as the paper has them: uniform up to 1/inputs in the first layer and up to
    √(6/inputs)/ω in the others, so that every layer's activations are spread alike.

    Args:
        inputs: Coordinates of a place.
        width: Of each hidden layer.
        layers: Hidden ones.
        omega: The frequency ω of all layers.
    """

    def __init__(self, inputs: int, width: int, layers: int, omega: float) -> None:
        super().__init__()
        widths = [inputs, *[width] * layers, 1]
        linear = [nn.Linear(inner, outer) for inner, outer in itertools.pairwise(widths)]
        self.hidden, self.last = nn.ModuleList(linear[:-1]), linear[-1]
        self.omega = omega
        with torch.no_grad():
            for i, layer in enumerate(linear):
                fan = layer.weight.shape[1]
                bound = 1 / fan if i == 0 else math.sqrt(6 / fan) / omega
                layer.weight.uniform_(-bound, bound)

    def forward(self, places: Tensor) -> Tensor:
        """Return the values at places, (points, coordinates) -> (points,)."""
        for layer in self.hidden:
            places = torch.sin(self.omega * layer(places))
        return self.last(places).squeeze(1)
