"""Language modelling on text in columns, the hidden state carried from batch to batch.

The training text is cut and joined anew at a place of the seed's choice and put into columns, which
are read side by side, `bptt` words at a time, from the beginning again when they end. What is
tested are the last weights. `treebank.py` is the same reading as AWD-LSTM published it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hvadam_bench.data.text import Corpus
from hvadam_bench.models.awd_lstm import AWDLSTM, Dropouts, State
from hvadam_bench.problems.treebank import in_columns
from hvadam_bench.tasks._schedules import warm_cosine
from hvadam_bench.tasks._spec import Problem, Split, Update, fit_batch

# Columns to evaluate in, whatever the batches are: each but the first begins without a state.
EVALUATED_COLUMNS = 20
_NO_DROPOUT = Dropouts(0.0, 0.0, 0.0, 0.0, 0.0)


class Batch(NamedTuple):
    """Words (length, columns), the words that follow them, and whether the text begins here."""

    words: Tensor
    targets: Tensor
    begins: bool


class ColumnProblem(Problem):
    """An LSTM of one layer, its embedding also its softmax, without dropout.

    Args:
        corpus: What to read.
        settings: "width", "columns", "bptt", "steps", "warmup" (a share), "curve_tokens",
            "max_grad_norm" and "weight_decay" are read.
        seed: The run's.
    """

    def __init__(self, corpus: Corpus, settings: Mapping[str, Any], seed: int) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = AWDLSTM(
                len(corpus.vocabulary), settings["width"], layers=1, dropouts=_NO_DROPOUT
            )
        self.networks = {"model": self.model}
        # A column holds at least a word and the one that follows it.
        self.batch_size = fit_batch(settings, len(corpus.train) // 2, "columns")
        # A part is taken of every column: some stretches of a text are far harder than others.
        self.glanced = settings["curve_tokens"] // EVALUATED_COLUMNS
        if self.glanced < 2:  # a word and the one that follows it
            fewest, given = 2 * EVALUATED_COLUMNS, settings["curve_tokens"]
            raise ValueError(f"curve_tokens must be at least {fewest}, got {given}.")
        begin = int(np.random.default_rng(seed).integers(len(corpus.train)))
        self.text: dict[Split, Tensor] = {
            "train": in_columns(np.roll(corpus.train, -begin), self.batch_size),
            "valid": in_columns(corpus.valid, EVALUATED_COLUMNS),
            "test": in_columns(corpus.test, EVALUATED_COLUMNS),
        }
        self.bptt, self.steps = settings["bptt"], settings["steps"]
        self.batches = math.ceil((len(self.text["train"]) - 1) / self.bptt)
        self.rising = round(settings["warmup"] * self.steps)
        self.weight_decay = settings["weight_decay"]
        self.max_grad_norm = settings["max_grad_norm"]
        self._state: State | None = None

    def batch(self, step: int, variant: int = 0) -> Batch:
        return self._piece(self.text["train"], step % self.batches)

    def updates(self, batch: Batch) -> Iterator[Update]:
        loss, state = self._loss(batch, None if batch.begins else self._state)
        self._state = tuple((h.detach(), c.detach()) for h, c in state)
        yield Update(loss)

    def lr_factor(self, step: int) -> float:
        return warm_cosine(step, self.steps, self.rising)

    def evaluate(self, split: Split) -> dict[str, float]:
        return self._measures(self.text[split])

    def glance(self) -> dict[str, float]:
        return self._measures(self.text["valid"][: self.glanced])

    @torch.no_grad()
    def _measures(self, text: Tensor) -> dict[str, float]:
        was_training = self.model.training
        self.model.eval()
        rows = len(text) - 1
        total, state = 0.0, None
        for place in range(math.ceil(rows / self.bptt)):
            batch = self._piece(text, place)
            loss, state = self._loss(batch, state)
            total += loss.item() * len(batch.words)
        self.model.train(was_training)
        return {"perplexity": math.exp(total / rows), "loss": total / rows}

    def state_dict(self) -> dict[str, Any]:
        return {"hidden": self._state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._state = state["hidden"]

    def _piece(self, text: Tensor, place: int) -> Batch:
        start = place * self.bptt
        targets = text[start + 1 : start + self.bptt + 1]
        return Batch(text[start : start + len(targets)], targets, begins=place == 0)

    def _loss(self, batch: Batch, state: State | None) -> tuple[Tensor, State]:
        device = self.model.bias.device
        out = self.model(batch.words.to(device), state)
        return self.model.loss(out.dropped, batch.targets.to(device)), out.state
