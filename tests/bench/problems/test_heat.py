"""The heat equation's derivatives and solution, held to automatic differentiation."""

from __future__ import annotations

import torch
from torch import Tensor

from hvadam_bench.models.perceptron import tanh_mlp
from hvadam_bench.problems import heat


def differentiated(u: Tensor, points: Tensor) -> Tensor:
    [slopes] = torch.autograd.grad(u.sum(), points, create_graph=True)
    return slopes


def test_derivatives_are_those_of_automatic_differentiation() -> None:
    torch.manual_seed(0)
    network = tanh_mlp([2, 7, 5, 1]).double()
    points = torch.rand(11, 2, dtype=torch.float64, requires_grad=True)
    u = network(points).squeeze(1)
    slopes = differentiated(u, points)
    bent = differentiated(slopes[:, 0], points)[:, 0]
    found = heat.jet(network, points)
    for ours, theirs in zip(found, (u, slopes[:, 0], slopes[:, 1], bent), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-13)


def test_the_solution_solves_the_equation_and_meets_its_edges() -> None:
    points = torch.rand(50, 2, dtype=torch.float64, requires_grad=True)
    slopes = differentiated(heat.solution(points), points)
    bent = differentiated(slopes[:, 0], points)[:, 0]
    torch.testing.assert_close(slopes[:, 1], heat.KAPPA * bent)
    drawn = heat.Points.draw(30, 9)
    assert heat.solution(drawn.ends).abs().max() < 1e-12
    x = drawn.start[:, 0]
    begun = torch.sin(torch.pi * x) + torch.sin(3 * torch.pi * x) / 2
    torch.testing.assert_close(heat.solution(drawn.start), begun)


def test_the_loss_is_the_sum_of_three_means() -> None:
    torch.manual_seed(0)
    network, points = tanh_mlp([2, 6, 1]).double(), heat.Points.draw(20, 5)
    inside = points.inside.clone().requires_grad_()
    slopes = differentiated(network(inside), inside)
    residual = slopes[:, 1] - heat.KAPPA * differentiated(slopes[:, 0], inside)[:, 0]
    errors = [network(at).squeeze(1) - heat.solution(at) for at in (points.start, points.ends)]
    expected = sum((x**2).mean() for x in (residual, *errors))
    torch.testing.assert_close(heat.loss(network, points), expected)
