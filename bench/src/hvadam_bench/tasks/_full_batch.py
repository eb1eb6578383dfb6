"""Problems without noise: one loss over all the data, the same at every step.

Optimization alone is judged: both splits are the training loss itself, whose floor is 0 or as near
as the network gets. Float64 unless a task says otherwise, for the best losses are small. Noise can
be had by the dose: with the setting "batch" a step sees so many of the examples, drawn anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hvadam_bench.tasks._problem import ModelProblem
from hvadam_bench.tasks._spec import Settings, Split, Update, fit_batch

SCHEDULES = ("cosine", "constant")
DTYPES = ("float32", "float64")


class FullBatchProblem(ModelProblem):
    """A network and a loss that sees everything at once, or a batch where one is asked for.

    Args:
        make: () -> the network; called under the run's seed.
        loss: The network -> its loss, to be differentiated. If the settings have "batch" it is
            also called with the numbers of some examples, and is then the loss over those.
        points: How many examples the loss is over.
        settings: "steps" and "warmup" (a share of them) are read, and where there are any:
            "schedule", "cosine" (after the warm-up, and what is meant if there is none) or
            "constant"; "dtype", "float32" or "float64" (what is meant if there is none); "batch",
            how many examples a step sees, None for all.
        seed: The run's.
        measure: The network -> what is measured beside its loss.

    Raises:
        ValueError: a setting is none of those.
    """

    def __init__(
        self,
        make: Callable[[], nn.Module],
        loss: Callable[..., Tensor],
        points: int,
        settings: Settings,
        seed: int,
        measure: Callable[[Any], dict[str, float]] | None = None,
    ) -> None:
        dtype = _one_of(settings, "dtype", DTYPES, "float64")
        self.schedule = _one_of(settings, "schedule", SCHEDULES, "cosine")
        self.seen = _batch(settings, points)
        self.same_loss = self.seen is None
        super().__init__(make, settings, seed)
        self.model.to(getattr(torch, dtype))
        self.points, self._loss, self._measure = points, loss, measure
        self.steps, self.batch_size = settings["steps"], self.seen or points

    def batch(self, step: int, variant: int = 0) -> Tensor | None:
        """Return the numbers of the examples that a step sees; None where it sees all there is."""
        if self.seen is None:
            return None
        rng = np.random.default_rng([self.seed, step])
        return torch.from_numpy(rng.choice(self.points, self.seen, replace=False, shuffle=False))

    def updates(self, batch: Tensor | None) -> Iterator[Update]:
        yield Update(self._loss(self.model) if batch is None else self._loss(self.model, batch))

    def lr_factor(self, step: int) -> float:
        if self.schedule == "cosine":
            return super().lr_factor(step)
        return min(1.0, (step + 1) / max(1, self.rising))

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        """Return the training loss over all examples, whichever split is asked for, and measures.

        "loss" is what the optimizer lowers; the rest is as the task has it.
        """
        measured = self._measure(self.model) if self._measure else {}
        return {"loss": self._loss(self.model).item(), **measured}


def _one_of(settings: Settings, name: str, known: tuple[str, ...], usual: str) -> str:
    value = settings.get(name, usual)
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
    return value


def _batch(settings: Settings, points: int) -> int | None:
    size = settings.get("batch")
    if size is None:
        return None
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ValueError(
            f"batch must be a whole number of at least 1, or None for all examples, got {size!r}."
        )
    return fit_batch(settings, points, "batch")
