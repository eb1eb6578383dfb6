"""The heat equation's solution and loss, held to automatic differentiation."""

from __future__ import annotations

import torch
from made_derivatives import by_inputs

from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks.physics import heat


def test_the_solution_solves_the_equation_and_meets_its_edges() -> None:
    at = by_inputs(heat.solution, torch.rand(50, 2, dtype=torch.float64))
    torch.testing.assert_close(at["t"], heat.KAPPA * at["xx"])
    drawn = heat.Points.draw(30, 9)
    assert heat.solution(drawn.ends).abs().max() < 1e-12
    x = drawn.start[:, 0]
    begun = torch.sin(torch.pi * x) + torch.sin(3 * torch.pi * x) / 2
    torch.testing.assert_close(heat.solution(drawn.start), begun)


def test_the_loss_is_the_sum_of_three_means() -> None:
    torch.manual_seed(0)
    network, points = tanh_mlp([2, 6, 1]).double(), heat.Points.draw(20, 5)
    at = by_inputs(lambda inside: network(inside).squeeze(1), points.inside)
    residual = at["t"] - heat.KAPPA * at["xx"]
    errors = [network(at).squeeze(1) - heat.solution(at) for at in (points.start, points.ends)]
    expected = sum((x**2).mean() for x in (residual, *errors))
    torch.testing.assert_close(heat.loss(network, points), expected)
