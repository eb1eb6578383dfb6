"""Problems at smoke scale, and a plain loop to train them."""

from __future__ import annotations

from typing import Any

import torch

from hvadam_bench import tasks
from hvadam_bench.tasks import Problem
from hvadam_bench.tasks.vision.classification import ImageProblem


def smoke(name: str, seed: int = 0, protocol: str = "standard", **changed: Any) -> Problem:
    """Build a task at smoke scale, with some settings changed."""
    task = tasks.get(name)
    return task.build({**task.scales["smoke"], **changed}, seed, protocol)


def smoke_images(
    name: str, protocol: str = "standard", seed: int = 0, **changed: Any
) -> ImageProblem:
    """Build an image task at smoke scale, with some settings changed."""
    built = smoke(name, seed, protocol, **changed)
    assert isinstance(built, ImageProblem)
    return built


def train(problem: Problem, steps: int, first: int = 0) -> list[float]:
    """Train with torch's Adam and return the losses."""
    torch.manual_seed(0)
    network = problem.networks["model"].train()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    losses: list[float] = []
    for step in range(first, first + steps):
        for loss, _ in problem.updates(problem.batch(step)):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses
