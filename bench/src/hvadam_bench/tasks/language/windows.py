"""Language modelling on windows of text, each of which starts from nothing.

So any batch can be made at any time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hvadam_bench.data.text import Corpus
from hvadam_bench.tasks._schedules import AnnealedProblem
from hvadam_bench.tasks._seeds import permuted, seeded
from hvadam_bench.tasks._spec import Settings, Split, Update, evaluating, fit_batch, run_length

Measure = Literal["perplexity", "bits_per_character"]


class NextTokenProblem(AnnealedProblem):
    """A model that predicts each next token of a window of text.

    Args:
        make: Size of the vocabulary -> a network, tokens (n, length) -> logits.
        corpus: What to read.
        seed: The run's.
    """

    def __init__(self, make: Callable[[int], nn.Module], corpus: Corpus, seed: int) -> None:
        self.seed = seed
        self.model = seeded(seed, lambda: make(len(corpus.vocabulary)))
        self.networks = {"model": self.model}

    def updates(self, batch: Tensor) -> Iterator[Update]:
        yield Update(self._loss(batch))

    def _loss(self, batch: Tensor) -> Tensor:
        batch = batch.to(self._device)
        logits = self.model(batch[:, :-1])
        return cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


class WindowProblem(NextTokenProblem):
    """A model that learns shuffled windows of a text, and is tested on others.

    Args:
        make: Size of the vocabulary -> a network, tokens (n, length) -> logits.
        corpus: What to read; its validation and test splits stand apart from the training text.
        settings: "length", "batch_size", "epochs" or "steps", "warmup" (a share),
            "max_grad_norm" and "weight_decay" are read.
        seed: The run's.
        measure: The unit of the mean loss: exp(loss), or loss / ln 2.
    """

    def __init__(
        self,
        make: Callable[[int], nn.Module],
        corpus: Corpus,
        settings: Settings,
        seed: int,
        measure: Measure,
    ) -> None:
        super().__init__(make, corpus, seed)
        self.measure = measure
        length = settings["length"]
        self.windows: dict[Split, Tensor] = {
            "train": cut_windows(corpus.train, length),
            "valid": cut_windows(corpus.valid, length),
            "test": cut_windows(corpus.test, length),
        }
        self.batch_size = fit_batch(settings, len(self.windows["train"]))
        self.batches = len(self.windows["train"]) // self.batch_size
        self.steps = run_length(settings, self.batches)
        self.rising = round(settings["warmup"] * self.steps)
        self.max_grad_norm = settings["max_grad_norm"]
        self.weight_decay = settings["weight_decay"]

    def batch(self, step: int, variant: int = 0) -> Tensor:
        epoch, place = divmod(step, self.batches)
        windows = self.windows["train"]
        order = permuted(len(windows), self.seed, epoch)
        return windows[order[place * self.batch_size : (place + 1) * self.batch_size]]

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        windows = self.windows[split]
        parts = windows.split(self.batch_size)
        with evaluating(self.model):
            loss = sum(self._loss(part).item() * len(part) for part in parts) / len(windows)
        value = math.exp(loss) if self.measure == "perplexity" else loss / math.log(2)
        return {self.measure: value, "loss": loss}


class FewWindowsProblem(NextTokenProblem):
    """A model that learns a fixed set of windows by heart: the noise is in the batch.

    Both splits are the loss over all the windows, at every batch size the same: optimization alone
    is judged, and runs which differ in their batch size alone show what noise does to an optimizer.

    Args:
        make: Size of the vocabulary -> a network, tokens (n, length) -> logits.
        corpus: Its training text is read, from the beginning.
        settings: "windows", "length", "batch" (0 for all the windows), "steps" and "warmup" (a
            share) are read.
        seed: The run's.
    """

    def __init__(
        self, make: Callable[[int], nn.Module], corpus: Corpus, settings: Settings, seed: int
    ) -> None:
        count, batch = settings["windows"], settings["batch"]
        if not 0 <= batch <= count:
            raise ValueError(f"batch must be from 0, for all windows, to {count}, got {batch}.")
        super().__init__(make, corpus, seed)
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
        order = permuted(len(self.windows), self.seed, epoch)
        chosen = order[place * self.batch_size : (place + 1) * self.batch_size]
        return self.windows[chosen.sort().values]  # all of them in one order

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        """Return the loss over all windows, whichever split is asked for."""
        return {"loss": self._loss(self.windows).item()}


def cut_windows(stream: np.ndarray, length: int) -> Tensor:
    """Cut a stream into windows that share one token; its last few tokens are left out."""
    starts = np.arange(0, len(stream) - length, length)
    return torch.from_numpy(stream[starts[:, None] + np.arange(length + 1)])
