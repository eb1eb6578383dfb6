"""Problems without noise: one loss over all the data, the same at every step.

Optimization alone is judged: both splits are the training loss itself, whose floor is 0 or as near
as the network gets. Everything is float64, for the best losses are small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from hvadam_bench.problems.schedules import warm_cosine
from hvadam_bench.problems.spec import Problem, Split, Update


class FullBatchProblem(Problem):
    """A network and a loss that sees everything at once.

    Args:
        make: () -> the network; called under the run's seed.
        loss: The network -> its loss, to be differentiated.
        points: How many examples the loss is over.
        settings: "steps" and "warmup" (a share of them) are read.
        seed: The run's.
    """

    def __init__(
        self,
        make: Callable[[], nn.Module],
        loss: Callable[[Any], Tensor],
        points: int,
        settings: Mapping[str, Any],
        seed: int,
    ) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = make().double()
        self.networks = {"model": self.model}
        self.steps, self.batch_size = settings["steps"], points
        self.rising = round(settings["warmup"] * self.steps)
        self._loss = loss

    def batch(self, step: int, variant: int = 0) -> None:
        """Return nothing: every step sees all there is."""

    def updates(self, batch: None) -> Iterator[Update]:
        yield Update(self._loss(self.model))

    def lr_factor(self, step: int) -> float:
        return warm_cosine(step, self.steps, self.rising)

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        """Return the training loss, whichever split is asked for."""
        return {"loss": self._loss(self.model).item()}
