"""Derivatives carried along layer by layer, held to automatic differentiation."""

from __future__ import annotations

import pytest
import torch
from made_derivatives import by_inputs

from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks.physics.jets import jet

WANTED = [("x", "t", "xx", "tt"), ("x", "t", "xx"), ("xx", "tt"), ("tt",), ("x", "t"), ("t",), ()]


@pytest.mark.parametrize("wanted", WANTED, ids="-".join)
def test_derivatives_are_those_of_automatic_differentiation(wanted: tuple[str, ...]) -> None:
    torch.manual_seed(0)
    network = tanh_mlp([2, 7, 5, 1]).double()
    points = torch.rand(11, 2, dtype=torch.float64)
    expected = by_inputs(lambda at: network(at).squeeze(1), points)
    found = jet(network, points, wanted)
    assert set(found) == {"u", *wanted, *(name[0] for name in wanted)}
    for name, values in found.items():
        torch.testing.assert_close(values, expected[name], rtol=1e-12, atol=1e-13)


def test_gradients_of_weights_are_those_of_automatic_differentiation() -> None:
    torch.manual_seed(0)
    network = tanh_mlp([2, 7, 5, 1]).double()
    points = torch.rand(11, 2, dtype=torch.float64)
    found = jet(network, points, ["xx", "tt"])
    expected = by_inputs(lambda at: network(at).squeeze(1), points)
    weights = list(network.parameters())
    ours = torch.autograd.grad((found["tt"] * found["xx"]).sum(), weights, allow_unused=True)
    theirs = torch.autograd.grad(
        (expected["tt"] * expected["xx"]).sum(), weights, allow_unused=True
    )
    for mine, other in zip(ours[:-1], theirs[:-1], strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-11, atol=1e-12)
    assert ours[-1] is None or not ours[-1].any()  # the last bias moves no derivative


def test_points_keep_their_type() -> None:
    network = tanh_mlp([2, 3, 1])
    assert {v.dtype for v in jet(network, torch.rand(4, 2), ["xx"]).values()} == {torch.float32}
