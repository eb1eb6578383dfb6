"""Coordinate networks of sines."""

from __future__ import annotations

import math
from typing import Any

import torch

from hvadam_bench.models.siren import Siren


def test_it_computes_sines_of_sines() -> None:
    torch.manual_seed(0)
    network: Any = Siren(2, 5, 2, 30.0).double()
    at = torch.rand(7, 2, dtype=torch.float64)
    first, second = network.hidden
    h = torch.sin(30 * (at @ first.weight.T + first.bias))
    h = torch.sin(30 * (h @ second.weight.T + second.bias))
    expected = (h @ network.last.weight.T + network.last.bias)[:, 0]
    torch.testing.assert_close(network(at), expected)


def test_weights_start_as_published() -> None:
    torch.manual_seed(0)
    network: Any = Siren(2, 64, 3, 30.0)
    bounds = [1 / 2, *[math.sqrt(6 / 64) / 30] * 3]
    for layer, bound in zip([*network.hidden, network.last], bounds, strict=True):
        largest = layer.weight.abs().max().item()
        assert 0.8 * bound < largest <= bound


def test_activations_are_spread_alike_in_every_layer() -> None:
    torch.manual_seed(0)
    network, h = Siren(2, 256, 3, 30.0), 2 * torch.rand(1000, 2) - 1
    for layer in network.hidden:
        h = torch.sin(30 * layer(h))
        assert 0.6 < h.std().item() < 0.8  # an arcsine's, √½
