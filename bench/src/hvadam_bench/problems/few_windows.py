"""A few windows of text, to be learnt by heart in batches of any size: the noise is in the batch.

What counts is the loss over all the windows, at every batch size the same, so that runs which
differ in their batch size alone show what noise does to an optimizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hvadam_bench.data.text import Corpus
from hvadam_bench.problems.windows import cut_windows
from hvadam_bench.tasks._schedules import warm_cosine
from hvadam_bench.tasks._spec import Problem, Split, Update


class FewWindowsProblem(Problem):
    """A model that predicts each next token of a fixed set of windows.

    Both splits are the loss over all the windows: optimization alone is judged.

    Args:
        make: Size of the vocabulary -> a network, tokens (n, length) -> logits.
        corpus: Its training text is read, from the beginning.
        settings: "windows", "length", "batch" (0 for all the windows), "steps" and "warmup" (a
            share) are read.
        seed: The run's.
    """

    def __init__(
        self,
        make: Callable[[int], nn.Module],
        corpus: Corpus,
        settings: Mapping[str, Any],
        seed: int,
    ) -> None:
        self.seed = seed
        count, batch = settings["windows"], settings["batch"]
        if not 0 <= batch <= count:
            raise ValueError(f"batch must be from 0, for all windows, to {count}, got {batch}.")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = make(len(corpus.vocabulary))
        self.networks = {"model": self.model}
        self.windows = cut_windows(corpus.train, settings["length"])[:count]
        if len(self.windows) < count:
            raise ValueError(
                f"windows must be at most {len(self.windows)}, all of the text, got {count}."
            )
        self.batch_size = batch or count
        self.steps = settings["steps"]
        self.rising = round(settings["warmup"] * self.steps)

    def batch(self, step: int, variant: int = 0) -> Tensor:
        epoch, place = divmod(step, len(self.windows) // self.batch_size)
        order = np.random.default_rng((self.seed, epoch)).permutation(len(self.windows))
        chosen = order[place * self.batch_size : (place + 1) * self.batch_size]
        return self.windows[torch.from_numpy(np.sort(chosen))]  # all of them in one order

    def updates(self, batch: Tensor) -> Iterator[Update]:
        yield Update(self._loss(batch))

    def lr_factor(self, step: int) -> float:
        return warm_cosine(step, self.steps, self.rising)

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        """Return the loss over all windows, whichever split is asked for."""
        return {"loss": self._loss(self.windows).item()}

    def _loss(self, batch: Tensor) -> Tensor:
        batch = batch.to(next(self.model.parameters()).device)
        logits = self.model(batch[:, :-1])
        return cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
