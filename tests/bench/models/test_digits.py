"""The networks for the digits: their weights depend on the seed alone."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from hvadam_bench.models.digits import make_cnn, make_mlp


@pytest.mark.parametrize("make", [make_cnn, make_mlp])
def test_network_depends_on_the_seed_alone(make: Callable[[int], nn.Module]) -> None:
    torch.rand(1)  # away from any state that a seed sets
    before = torch.get_rng_state()
    weights = [torch.cat([p.flatten() for p in make(seed).parameters()]) for seed in (0, 0, 1)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(torch.get_rng_state(), before)
