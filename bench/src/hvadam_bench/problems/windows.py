"""Language modelling on shuffled windows of text: what its tasks share.

Each window starts from nothing, so that any batch can be made at any time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hvadam_bench.data.text import Corpus
from hvadam_bench.tasks._schedules import warm_cosine
from hvadam_bench.tasks._spec import Problem, Split, Update, fit_batch, run_length

Measure = Literal["perplexity", "bits_per_character"]


class WindowProblem(Problem):
    """A model that predicts each next token of a window of text.

    The learning rate rises linearly for `warmup` of the steps and then falls to 0 along half a
    cosine.

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
        settings: Mapping[str, Any],
        seed: int,
        measure: Measure,
    ) -> None:
        self.seed, self.measure = seed, measure
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = make(len(corpus.vocabulary))
        self.networks = {"model": self.model}
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
        order = np.random.default_rng((self.seed, epoch)).permutation(len(windows))
        chosen = order[place * self.batch_size : (place + 1) * self.batch_size]
        return windows[torch.from_numpy(chosen)]

    def updates(self, batch: Tensor) -> Iterator[Update]:
        yield Update(self._loss(batch))

    def lr_factor(self, step: int) -> float:
        return warm_cosine(step, self.steps, self.rising)

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        was_training = self.model.training
        self.model.eval()
        windows = self.windows[split]
        parts = windows.split(self.batch_size)
        loss = sum(self._loss(part).item() * len(part) for part in parts) / len(windows)
        self.model.train(was_training)
        value = math.exp(loss) if self.measure == "perplexity" else loss / math.log(2)
        return {self.measure: value, "loss": loss}

    def _loss(self, batch: Tensor) -> Tensor:
        batch = batch.to(next(self.model.parameters()).device)
        logits = self.model(batch[:, :-1])
        return cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


def cut_windows(stream: np.ndarray, length: int) -> Tensor:
    """Cut a stream into windows that share one token; its last few tokens are left out."""
    starts = np.arange(0, len(stream) - length, length)
    return torch.from_numpy(stream[starts[:, None] + np.arange(length + 1)])
