"""Problems at smoke scale, and a plain loop to train them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

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


# Derivatives of a function of (x, t) by automatic differentiation, to judge others by.
def by_inputs(function: Callable[[Tensor], Tensor], points: Tensor) -> dict[str, Tensor]:
    """Return the function at points, one a row, with its first and second derivatives."""
    points = points.clone().requires_grad_()
    u = function(points)
    x, t = slopes(u, points).T
    return {"u": u, "x": x, "t": t, "xx": slopes(x, points)[:, 0], "tt": slopes(t, points)[:, 1]}


def slopes(u: Tensor, points: Tensor) -> Tensor:
    """Return the derivatives of each value by its own point."""
    [found] = torch.autograd.grad(u.sum(), points, create_graph=True, materialize_grads=True)
    return found


# Small files in the official layouts of image data sets.
def pictures(count: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw random 32×32 images and their labels."""
    rng = np.random.default_rng(count)
    pixels = rng.integers(256, size=(count, 3, 32, 32), dtype=np.uint8)
    return pixels, rng.integers(classes, size=count, dtype=np.uint8)


def as_binary(pixels: np.ndarray, labels: np.ndarray, classes: int) -> bytes:
    """Return images in the binary layout of CIFAR."""
    coarse = b"" if classes == 10 else b"\x07"
    rows = zip(labels, pixels, strict=True)
    return b"".join(coarse + bytes([label]) + image.tobytes() for label, image in rows)


def as_idx(values: np.ndarray) -> bytes:
    """Return an array in the idx layout of MNIST."""
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()
