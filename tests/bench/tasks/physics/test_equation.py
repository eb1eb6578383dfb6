"""Every equation's solution, the points, the loss and the error."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from made_problems import by_inputs
from torch import Tensor, nn

from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks.physics.equation import (
    Equation,
    Loss,
    Points,
    grid,
    on_grid,
    problem,
    relative_error,
    scattered,
)
from hvadam_bench.tasks.physics.problems import burgers, convection, reaction, wave

EQUATIONS = {
    "convection": convection(10.0),
    "reaction": reaction(3.0),
    "wave": wave(1.0, 2),
    "fast wave": wave(2.0, 5),
    "burgers": burgers(0.05 / math.pi),
    "thin burgers": burgers(0.01 / math.pi),
}
every_equation = pytest.mark.parametrize("equation", EQUATIONS.values(), ids=EQUATIONS)


class Known(nn.Module):
    """A "network" that is a function of (x, t)."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, points: Tensor) -> Tensor:
        return self.function(points)[:, None]


def at_edges(equation: Equation, t: float = 0.3) -> tuple[Tensor, Tensor]:
    """Return the solution and its derivatives at both ends."""
    ends = [[equation.low, t], [equation.high, t]]
    at = by_inputs(equation.solution, torch.tensor(ends, dtype=torch.float64))
    return at["u"].detach(), at["x"].detach()


@every_equation
def test_the_solution_solves_the_equation(equation: Equation) -> None:
    inside = scattered(equation, 200, 1, 2, seed=0).inside
    at = by_inputs(equation.solution, inside)
    size = max(at[name].abs().max() for name in equation.wanted)
    assert equation.residual(at).abs().max() < 1e-8 * size
    # By another function it is not solved, so that the residual says something.
    other = by_inputs(lambda points: 0.9 * equation.solution(points) + points[:, 1] ** 2, inside)
    assert equation.residual(other).abs().max() > 0.01


@every_equation
def test_the_solution_meets_the_ends_and_the_start(equation: Equation) -> None:
    ends, _ = at_edges(equation)
    # The reaction's bell is 3e-4 where the period ends, on both sides.
    assert (ends[0] - ends[1] if equation.periodic else ends).abs().max() < 1e-9
    start = grid(equation, [33, 2])[:, 0]
    at = by_inputs(equation.solution, start + torch.tensor([0.0, 1e-12]))
    assert (at["t"].abs().max() < 1e-6) == equation.at_rest


def test_solutions_begin_as_their_sources_say() -> None:
    x = torch.linspace(0.1, 0.9, 7, dtype=torch.float64)
    start = torch.stack([x, torch.zeros_like(x)], 1)
    bell = torch.exp(-((x - math.pi) ** 2) / (2 * (math.pi / 4) ** 2))
    begun = {
        "convection": x.sin(),
        "reaction": bell,
        "wave": (math.pi * x).sin() + (2 * math.pi * x).sin() / 2,
        "fast wave": (math.pi * x).sin() + (5 * math.pi * x).sin() / 2,
        "burgers": -(math.pi * x).sin(),
        "thin burgers": -(math.pi * x).sin(),
    }
    for name, equation in EQUATIONS.items():
        torch.testing.assert_close(equation.solution(start), begun[name])


@every_equation
def test_the_loss_is_the_sum_of_its_means(equation: Equation) -> None:
    torch.manual_seed(0)
    network = tanh_mlp([2, 6, 4, 1]).double()
    points = on_grid(equation, [9, 6], 30, seed=0)

    def u(at: Tensor) -> Tensor:
        return network(at).squeeze(1)

    at_start = by_inputs(u, points.start)
    terms = [equation.residual(by_inputs(u, points.inside))]
    terms.append(at_start["u"] - equation.solution(points.start))
    if equation.periodic:
        terms.append(u(points.lows) - u(points.highs))
    else:
        terms.append(torch.cat([u(points.lows), u(points.highs)]))
    if equation.at_rest:
        terms.append(at_start["t"])
    expected = sum((term**2).mean() for term in terms)
    torch.testing.assert_close(Loss(equation, points)(network), expected)


def test_a_batch_is_the_loss_at_its_points_and_all_of_the_edges() -> None:
    torch.manual_seed(0)
    network, equation = tanh_mlp([2, 6, 1]).double(), EQUATIONS["burgers"]
    points = scattered(equation, 20, 5, 6, seed=0)
    loss, rows = Loss(equation, points), torch.tensor([3, 17, 4])
    fewer = points._replace(inside=points.inside[rows])
    assert loss(network, rows) == Loss(equation, fewer)(network)
    assert loss(network, torch.arange(20)) == loss(network)
    halves = [loss(network, half) for half in torch.arange(20).chunk(2)]
    torch.testing.assert_close((halves[0] + halves[1]) / 2, loss(network))


@every_equation
def test_points_lie_where_they_should(equation: Equation) -> None:
    drawn = (on_grid(equation, [9, 6], 35, seed=1), scattered(equation, 35, 9, 13, seed=1))
    for points in drawn:
        x, t = points.inside.T
        assert len(points.inside) == 35
        assert ((equation.low < x) & (x < equation.high) & (t > 0) & (t <= 1)).all()
        assert (points.start[:, 1] == 0).all()
        assert (points.lows[:, 0] == equation.low).all()
        assert (points.highs[:, 0] == equation.high).all()
        assert len(points.start) == 9
    assert (len(drawn[1].lows), len(drawn[1].highs)) == (6, 7)
    on = drawn[0]
    assert len(on.inside.unique(dim=0)) == 35  # all there are
    assert torch.equal(on.lows[:, 1], on.highs[:, 1])  # pairs, for what is periodic
    whole = grid(equation, [9, 6]).reshape(-1, 2).tolist()
    assert all(point in whole for part in on for point in part.tolist())


def test_points_depend_on_the_seed_alone() -> None:
    for draw in (
        lambda seed: on_grid(EQUATIONS["wave"], [9, 6], 10, seed),
        lambda seed: scattered(EQUATIONS["wave"], 10, 4, 4, seed),
    ):
        one, same, other = draw(0), draw(0), draw(1)
        assert all(map(torch.equal, one, same))
        assert not torch.equal(one.inside, other.inside)


def test_a_grid_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match=r"inside must be at most 35, .* got 36\."):
        on_grid(EQUATIONS["wave"], [9, 6], 36, seed=0)


@every_equation
def test_the_error_is_relative_to_the_solution(equation: Equation) -> None:
    everywhere = grid(equation, [17, 11]).reshape(-1, 2)
    solution = equation.solution(everywhere)
    for factor in (1.0, 0.97, 0.0, -1.0):

        def scaled(at: Tensor, factor: float = factor) -> Tensor:
            return factor * equation.solution(at)

        found = relative_error(Known(scaled), everywhere, solution)
        assert found == pytest.approx(1 - factor, abs=1e-12)


def settings(**changed: Any) -> dict[str, Any]:
    usual = {"grid": [17, 11], "width": 4, "layers": 1, "dtype": "float64", "arrived_below": 0.1}
    return {**usual, "steps": 10, "warmup": 0.1, **changed}


@every_equation
def test_solved_and_collapsed_are_told_apart(equation: Equation) -> None:
    points = Points(*(part[:4] for part in on_grid(equation, [9, 6], 20, seed=0)))
    built = problem(equation, points, settings(), seed=0)
    evaluate = {}
    for name, function in {
        "solved": equation.solution,
        "nearly": lambda at: 0.95 * equation.solution(at),
        "collapsed": lambda at: 0 * at[:, 0],
    }.items():
        built._loss = lambda network: torch.zeros(())  # jets are of perceptrons alone
        built.model = Known(function)
        evaluate[name] = built.evaluate("valid")
    assert [evaluate[name]["arrived"] for name in evaluate] == [1.0, 1.0, 0.0]
    assert evaluate["nearly"]["error"] == pytest.approx(0.05)
    assert evaluate["collapsed"]["error"] == pytest.approx(1)


def test_numbers_are_of_the_type_asked_for() -> None:
    equation = EQUATIONS["wave"]
    points = on_grid(equation, [9, 6], 20, seed=0)
    for dtype in ("float32", "float64"):
        built = problem(equation, points, settings(dtype=dtype), seed=0)
        [update] = built.updates(built.batch(0))
        assert update.loss.dtype == getattr(torch, dtype)
        assert {p.dtype for p in built.model.parameters()} == {getattr(torch, dtype)}
