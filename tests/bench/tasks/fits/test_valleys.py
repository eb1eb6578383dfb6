"""The fits in valleys: a solution with a loss of 0, and noise that fades towards it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from made_problems import smoke
from torch import nn

from hvadam_bench import tasks
from hvadam_bench.tasks import Problem

VALLEYS = ["deep_linear", "rosenbrock_chain", "phase_retrieval", "tensor_decomposition"]


def solved(name: str, steps: int = 400, **settings: Any) -> Problem:
    """Return a small problem after torch's L-BFGS has had its time."""
    problem = smoke(name, **settings)
    network = problem.networks["model"]
    optimizer = torch.optim.LBFGS(
        network.parameters(), max_iter=steps, line_search_fn="strong_wolfe"
    )

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        [update] = problem.updates(None)
        update.loss.backward()
        return update.loss

    optimizer.step(closure)
    return problem


@pytest.mark.parametrize("name", VALLEYS)
def test_there_is_a_solution(name: str) -> None:
    start = smoke(name).evaluate("valid")["loss"]
    assert start > 1e-2
    assert min(solved(name, steps).evaluate("valid")["loss"] for steps in (100, 1000)) < 1e-8


def test_rosenbrocks_chain_is_his_function_of_two_numbers() -> None:
    problem = smoke("rosenbrock_chain", size=2)
    [place] = problem.networks["model"].parameters()
    place.data = torch.tensor([-1.2, 1.0], dtype=torch.float64)
    assert problem.evaluate("test")["loss"] == pytest.approx(24.2)


def test_a_batch_of_examples_has_noise_until_one_map_fits_all() -> None:
    problem = smoke("deep_linear", batch=8)
    losses = {next(problem.updates(problem.batch(step))).loss.item() for step in range(4)}
    assert len(losses) == 4
    whole = problem.evaluate("valid")["loss"]
    assert min(losses) < whole < max(losses)
    settings = tasks.get("deep_linear").scales["laptop"]
    layers = [one for one in problem.networks["model"].children() if isinstance(one, nn.Linear)]
    assert len(layers) == 2 < settings["layers"]


def test_the_sum_to_learn_is_of_the_two_marked_numbers() -> None:
    problem = smoke("adding_rnn")
    network = problem.networks["model"]
    seen: list[torch.Tensor] = []
    network.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    network.register_forward_hook(
        lambda *_: (seen[-1][:, :, 0] * seen[-1][:, :, 1]).sum(1).requires_grad_()
    )
    assert next(problem.updates(None)).loss.item() == 0
    assert (seen[-1][:, :, 1].sum(1) == 2).all()
