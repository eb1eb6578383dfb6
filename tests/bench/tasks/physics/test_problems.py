"""The heat equation's solution and loss; Burgers' by quadrature, held to a spectral solver."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from made_problems import by_inputs, smoke, train
from scipy.integrate import solve_ivp

from hvadam_bench import tasks
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.running.runner import run
from hvadam_bench.tasks._full_batch import FullBatchProblem
from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks.physics.equation import Equation, grid
from hvadam_bench.tasks.physics.jets import jet
from hvadam_bench.tasks.physics.problems import (
    KAPPA,
    burgers_solution,
    heat_loss,
    heat_solution,
)

WHERE = Equation(-1.0, 1.0, (), lambda at: at["u"], lambda points: points[:, 0])


def by_quadrature(viscosity: float, sizes: tuple[int, int], nodes: int = 200) -> np.ndarray:
    points = grid(WHERE, sizes)
    return burgers_solution(points.reshape(-1, 2), viscosity, nodes).reshape(sizes).numpy()


def by_sines(viscosity: float, count: int, times: np.ndarray) -> np.ndarray:
    """Solve for the sine series of u on [0, 1], where it is odd, as equations in time.

    Returns u at x = 1 / count, 2 / count, ..., for each of the times.
    """
    inner = np.arange(1, count)
    k = math.pi * inner
    waves = np.sin(np.outer(k, inner / count))  # its inverse is 2 / count times itself
    slopes = k * np.cos(np.outer(inner / count, k))

    def slope(_: float, c: np.ndarray) -> np.ndarray:
        return -2 / count * waves @ ((waves @ c) * (slopes @ c)) - viscosity * k**2 * c

    def jacobian(_: float, c: np.ndarray) -> np.ndarray:
        moved = (slopes @ c)[:, None] * waves + (waves @ c)[:, None] * slopes
        return -2 / count * waves @ moved - np.diag(viscosity * k**2)

    solved = solve_ivp(
        slope,
        (0, 1),
        -np.eye(count - 1)[0],  # -sin πx
        method="LSODA",
        jac=jacobian,
        t_eval=times,
        rtol=1e-10,
        atol=1e-12,
    )
    return waves @ solved.y


THIN = pytest.param(0.01, 512, marks=pytest.mark.slow)


@pytest.mark.parametrize(("viscosity", "count"), [(0.5, 32), (0.05, 128), THIN])
def test_two_solvers_agree(viscosity: float, count: int) -> None:
    assert distance(viscosity, count) < 1e-8


def test_two_solvers_agree_ever_better_with_more_waves() -> None:
    distances = [distance(0.05, count) for count in (32, 64, 128)]
    assert distances[0] > 10 * distances[1] > 100 * distances[2]


def distance(viscosity: float, count: int) -> float:
    """Return how far apart both solvers are, at worst."""
    quadrature = by_quadrature(viscosity / math.pi, (2 * count + 1, 6))
    spectral = by_sines(viscosity / math.pi, count, np.linspace(0, 1, 6))
    return float(np.abs(quadrature[count + 1 : -1] - spectral).max())


@pytest.mark.parametrize("viscosity", [0.5, 0.05, 0.01])
def test_the_solution_is_odd_keeps_its_mass_and_decays(viscosity: float) -> None:
    u = by_quadrature(viscosity / math.pi, (129, 21))
    np.testing.assert_allclose(u, -u[::-1], atol=1e-12)
    np.testing.assert_allclose(u.sum(0), 0, atol=1e-11)
    np.testing.assert_allclose(u[[0, 64, -1]], 0, atol=1e-12)
    assert (np.diff((u**2).sum(0)[5:]) < 0).all()  # after the shock has formed at about t = 0.3
    assert np.abs(u).max() <= 1 + 1e-12


@pytest.mark.parametrize("viscosity", [0.5, 0.05, 0.01])
def test_more_nodes_change_nothing(viscosity: float) -> None:
    few, usual, many = (by_quadrature(viscosity / math.pi, (65, 11), n) for n in (20, 200, 300))
    np.testing.assert_allclose(usual, many, rtol=0, atol=1e-12)
    assert np.abs(few - many).max() >= np.abs(usual - many).max()


def test_the_heat_solves_its_equation_and_meets_its_edges() -> None:
    at = by_inputs(heat_solution, torch.rand(50, 2, dtype=torch.float64))
    torch.testing.assert_close(at["t"], KAPPA * at["xx"])
    ends = torch.tensor([[x, t] for x in (0, 1) for t in (0, 0.3, 1)], dtype=torch.float64)
    assert heat_solution(ends).abs().max() < 1e-12
    x = torch.linspace(0, 1, 9, dtype=torch.float64)
    begun = torch.sin(torch.pi * x) + torch.sin(3 * torch.pi * x) / 2
    start = torch.stack([x, torch.zeros_like(x)], 1)
    torch.testing.assert_close(heat_solution(start), begun)


def test_the_loss_of_the_heat_is_the_sum_of_three_means() -> None:
    torch.manual_seed(0)
    network, points = tanh_mlp([2, 6, 1]).double(), torch.rand(35, 2, dtype=torch.float64)
    inside, start, ends = points.split([20, 5, 10])
    at = by_inputs(lambda inside: network(inside).squeeze(1), inside)
    residual = at["t"] - KAPPA * at["xx"]
    errors = [network(at).squeeze(1) - heat_solution(at) for at in (start, ends)]
    expected = sum((x**2).mean() for x in (residual, *errors))
    torch.testing.assert_close(heat_loss(network, inside, points[20:]), expected)


# Derivatives carried along layer by layer, held to automatic differentiation.
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


# Physics-informed networks as tasks: what they are judged by, their batches, their protocols.
PINNS = ["pinn_convection", "pinn_reaction", "pinn_wave", "pinn_burgers"]
every_pinn = pytest.mark.parametrize("name", PINNS)


@every_pinn
def test_judged_by_the_loss_trained_on_beside_error_and_arrival(name: str) -> None:
    problem = smoke(name)
    before = problem.evaluate("valid")
    train(problem, problem.steps)
    after = problem.evaluate("test")
    [update] = problem.updates(problem.batch(0))
    assert after.keys() == {"loss", "error", "arrived"}
    assert after["loss"] == pytest.approx(update.loss.item())
    assert after["loss"] < 0.9 * before["loss"]
    assert after["arrived"] == float(after["error"] < 0.1)


@every_pinn
def test_batches_cut_the_points_inside(name: str) -> None:
    problem = smoke(name, batch=6)
    assert problem.batch_size == 6
    rows = problem.batch(3)
    assert torch.equal(rows, smoke(name, batch=6).batch(3))
    [drawn], [whole] = problem.updates(rows), smoke(name).updates(None)
    assert drawn.loss != whole.loss
    assert problem.evaluate("valid") == smoke(name).evaluate("valid")
    with pytest.raises(ValueError, match=r"batch must be at most 20, .* got 21\."):
        smoke(name, batch=21)


@every_pinn
def test_scales(name: str) -> None:
    task = tasks.get(name)
    assert list(task.scales) == ["smoke", "laptop", "paper"]
    assert task.evaluations >= 30
    paper = task.scales["paper"]
    assert (paper["dtype"], paper["schedule"], paper["warmup"]) == ("float32", "constant", 0.0)
    published = {"pinn_burgers": (2540, 20, 15_000)}.get(name, (10_000, 200, 41_000))
    assert tuple(paper[key] for key in ("inside", "width", "steps")) == published


def test_paper_scale_builds_as_published() -> None:
    task = tasks.get("pinn_wave")
    problem = task.build(task.scales["paper"], 0, "standard")
    assert isinstance(problem, FullBatchProblem)
    shapes = [tuple(p.shape) for p in problem.model.parameters()]
    assert shapes == [(200, 2), (200,), (200, 200), (200,), (200, 200), (200,), (1, 200), (1,)]
    assert problem.lr_factor(0) == problem.lr_factor(40_999) == 1


def test_a_run_keeps_error_and_arrival_in_its_record(tmp_path: Path) -> None:
    asked = RunConfig("pinn_burgers", "adam", "smoke", options={"lr": 1e-2}, settings={"batch": 5})
    record = run(asked, Store(tmp_path))
    assert len(record.curve) == 31
    assert record.curve[-1].valid.keys() == {"loss", "error", "arrived"}
    assert all(math.isfinite(point.valid["error"]) for point in record.curve)
    assert {point.valid["arrived"] for point in record.curve} <= {0.0, 1.0}
