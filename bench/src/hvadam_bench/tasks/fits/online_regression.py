"""Regression on a stream: no example comes twice, inputs of very different sizes, noisy targets.

A perceptron learns another one, the teacher, which is always the same. Training sees the teacher's
values with noise; evaluations measure the squared error to the teacher itself, whose floor is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks._schedules import AnnealedProblem
from hvadam_bench.tasks._seeds import seeded
from hvadam_bench.tasks._spec import Settings, Split, Update

TEACHER_SEED = 1_000_003  # no run's own, or it would know everything from the start
EVALUATED = {"train": 1, "valid": 2, "test": 3}  # their seeds


class Examples(NamedTuple):
    """Inputs and targets."""

    inputs: Tensor
    targets: Tensor


class OnlineRegressionProblem(AnnealedProblem):
    """A perceptron that learns another one from a stream.

    Args:
        settings: "inputs", "spread" (the largest input's size over the smallest's), "width",
            "noise" (of targets of size 1), "evaluated", "batch_size", "steps" and "warmup" (a
            share) are read.
        seed: The run's.
    """

    def __init__(self, settings: Settings, seed: int) -> None:
        self.seed, self.settings = seed, settings
        self.batch_size, self.steps = settings["batch_size"], settings["steps"]
        self.rising = round(settings["warmup"] * self.steps)
        widths = [settings["inputs"], settings["width"], 1]
        self._teacher = seeded(TEACHER_SEED, lambda: tanh_mlp(widths)).requires_grad_(False)
        self.model = seeded(seed, lambda: tanh_mlp(widths))
        self.networks = {"model": self.model}
        sizes = np.geomspace(1, 1 / settings["spread"], settings["inputs"])
        self._sizes = sizes * np.sqrt(len(sizes) / np.sum(sizes**2))
        self._held = {split: self._draw((place,), 0.0) for split, place in EVALUATED.items()}

    def batch(self, step: int, variant: int = 0) -> Examples:
        return self._draw((self.seed, step, 4), self.settings["noise"])

    def updates(self, batch: Examples) -> Iterator[Update]:
        yield Update(mse_loss(self.model(batch.inputs), batch.targets))

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        inputs, targets = self._held[split]
        return {"loss": mse_loss(self.model(inputs), targets).item()}

    @torch.no_grad()
    def _draw(self, seed: tuple[int, ...], noise: float) -> Examples:
        rng = np.random.default_rng(seed)
        count = self.batch_size if noise else self.settings["evaluated"]
        drawn = rng.standard_normal((count, len(self._sizes) + 1))
        inputs = torch.from_numpy(drawn[:, :-1] * self._sizes).float()
        targets = self._teacher(inputs)
        return Examples(inputs, targets + noise * torch.from_numpy(drawn[:, -1:]).float())
