"""Language modelling on text in columns, the hidden state carried from batch to batch.

Columns of text are read side by side; each batch goes on where the last one ended, and carries the
hidden state. `ColumnProblem` is the plain form of it.

`PennTreebankProblem` reads as AWD-LSTM was published: twenty columns, some 70 words at a time. A
batch's learning rate is scaled by its length. The loss
adds to the cross-entropy α·mean(h²) of the dropped last outputs and β·mean((hₜ − hₜ₋₁)²) of the
undropped ones. The weights of the best validation are those that are tested.

Under protocol "inherited" two slips of the published code are repeated: the recurrent weights get
no gradient and keep their random values, and "valid" is the test text, so that the best epoch is
chosen where it is reported; the measure is then also called "test_perplexity".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hvadam_bench.data.text import Corpus
from hvadam_bench.tasks._schedules import AnnealedProblem
from hvadam_bench.tasks._seeds import seeded
from hvadam_bench.tasks._spec import Problem, Settings, Split, Update, evaluating, fit_batch
from hvadam_bench.tasks.language.recurrent import AWDLSTM, Dropouts, State

# Columns to evaluate in, whatever the batches are: each but the first begins without a state.
EVALUATED_COLUMNS = 20
_NO_DROPOUT = Dropouts(0.0, 0.0, 0.0, 0.0, 0.0)


class ColumnBatch(NamedTuple):
    """Words (length, columns), the words that follow them, and whether the text begins here."""

    words: Tensor
    targets: Tensor
    begins: bool


class Piece(NamedTuple):
    """The place of a step's batch in the text."""

    epoch: int
    start: int
    length: int


class PennTreebankProblem(Problem):
    """A language model that carries its hidden state from batch to batch; see the module."""

    def __init__(self, text: Corpus, settings: Settings, seed: int, protocol: str) -> None:
        self.settings = settings
        self.inherited = protocol == "inherited"
        self.model = seeded(
            seed,
            lambda: AWDLSTM(
                len(text.vocabulary),
                settings["width"],
                settings["hidden"],
                settings["layers"],
                Dropouts(*settings["dropouts"]),
                frozen_recurrence=self.inherited,
            ),
        )
        self.networks = {"model": self.model}
        # A column holds at least a word and the one that follows it.
        self.batch_size = fit_batch(settings, len(text.train) // 2, "columns")
        self.weight_decay = settings["weight_decay"]
        self.max_grad_norm = settings["max_grad_norm"]
        self.text = self._columns(text)
        self.pieces = pieces(len(self.text["train"]), settings["bptt"], settings["epochs"], seed)
        self.steps = len(self.pieces)
        self._state: State | None = None
        self._best: tuple[float, dict[str, Tensor]] | None = None  # validation loss, weights

    def batch(self, step: int, variant: int = 0) -> ColumnBatch:
        _, start, length = self.pieces[step]
        text = self.text["train"]
        after = text[start + 1 : start + length + 1]
        return ColumnBatch(text[start : start + length], after, begins=start == 0)

    def updates(self, batch: ColumnBatch) -> Iterator[Update]:
        state = None if batch.begins else self._state
        out = self.model(batch.words.to(self._device), state)
        self._state = _detached(out.state)
        loss = self.model.loss(out.dropped, batch.targets.to(self._device))
        loss = loss + self.settings["ar"] * out.dropped.square().mean()
        if len(out.raw) > 1:  # a text may end in a batch of one word
            loss = loss + self.settings["tar"] * out.raw.diff(dim=0).square().mean()
        yield Update(loss)

    def lr_factor(self, step: int) -> float:
        epoch, _, length = self.pieces[step]
        decay = 0.1 ** sum(epoch >= milestone for milestone in self.settings["milestones"])
        return decay * length / self.settings["bptt"]

    def evaluate(self, split: Split) -> dict[str, float]:
        if split == "test" and self._best is not None:
            own = {name: value.clone() for name, value in self.model.state_dict().items()}
            self.model.load_state_dict(self._best[1])
            loss = self._loss("test")
            self.model.load_state_dict(own)
        else:
            loss = self._loss("test" if self.inherited and split == "valid" else split)
        if split == "valid" and (self._best is None or loss < self._best[0]):
            weights = {name: value.clone() for name, value in self.model.state_dict().items()}
            self._best = loss, weights
        measures = {"perplexity": math.exp(loss), "loss": loss}
        if self.inherited and split == "valid":
            measures["test_perplexity"] = measures["perplexity"]
        return measures

    def state_dict(self) -> dict[str, Any]:
        return {"hidden": self._state, "best": self._best}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._state, self._best = state["hidden"], state["best"]

    @torch.no_grad()
    def _loss(self, split: Split) -> float:
        """Return the mean cross-entropy of a text read from its beginning."""
        text = self.text[split].to(self._device)
        length, state, total = self.settings["bptt"], None, 0.0
        with evaluating(self.model):
            for start in range(0, len(text) - 1, length):
                targets = text[start + 1 : start + length + 1]
                out = self.model(text[start : start + len(targets)], state)
                state = out.state
                total += self.model.loss(out.dropped, targets).item() * len(targets)
        return total / (len(text) - 1)

    def _columns(self, text: Corpus) -> dict[Split, Tensor]:
        splits: dict[Split, np.ndarray] = {
            "train": text.train,
            "valid": text.valid,
            "test": text.test,
        }
        columns = self.settings["evaluation_columns"]
        return {
            split: in_columns(stream, self.batch_size if split == "train" else columns)
            for split, stream in splits.items()
        }


class ColumnProblem(AnnealedProblem):
    """An LSTM of one layer, its embedding also its softmax, without dropout.

    The training text is cut and joined anew at a place of the seed's choice and put into columns,
    which are read `bptt` words at a time, from the beginning again when they end. What is tested
    are the last weights.

    Args:
        corpus: What to read.
        settings: "width", "columns", "bptt", "steps", "warmup" (a share), "curve_tokens",
            "max_grad_norm" and "weight_decay" are read.
        seed: The run's.
    """

    def __init__(self, corpus: Corpus, settings: Settings, seed: int) -> None:
        words, width = len(corpus.vocabulary), settings["width"]
        self.model = seeded(seed, lambda: AWDLSTM(words, width, dropouts=_NO_DROPOUT))
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

    def batch(self, step: int, variant: int = 0) -> ColumnBatch:
        return self._piece(self.text["train"], step % self.batches)

    def updates(self, batch: ColumnBatch) -> Iterator[Update]:
        loss, state = self._loss(batch, None if batch.begins else self._state)
        self._state = _detached(state)
        yield Update(loss)

    def evaluate(self, split: Split) -> dict[str, float]:
        return self._measures(self.text[split])

    def glance(self) -> dict[str, float]:
        return self._measures(self.text["valid"][: self.glanced])

    @torch.no_grad()
    def _measures(self, text: Tensor) -> dict[str, float]:
        rows = len(text) - 1
        total, state = 0.0, None
        with evaluating(self.model):
            for place in range(math.ceil(rows / self.bptt)):
                batch = self._piece(text, place)
                loss, state = self._loss(batch, state)
                total += loss.item() * len(batch.words)
        return {"perplexity": math.exp(total / rows), "loss": total / rows}

    def state_dict(self) -> dict[str, Any]:
        return {"hidden": self._state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._state = state["hidden"]

    def _piece(self, text: Tensor, place: int) -> ColumnBatch:
        start = place * self.bptt
        targets = text[start + 1 : start + self.bptt + 1]
        return ColumnBatch(text[start : start + len(targets)], targets, begins=place == 0)

    def _loss(self, batch: ColumnBatch, state: State | None) -> tuple[Tensor, State]:
        out = self.model(batch.words.to(self._device), state)
        return self.model.loss(out.dropped, batch.targets.to(self._device)), out.state


def _detached(state: State) -> State:
    return tuple((h.detach(), c.detach()) for h, c in state)


def in_columns(stream: np.ndarray, columns: int) -> Tensor:
    """Cut a stream into equal parts, side by side; the last few words are left out."""
    rows = len(stream) // columns
    return torch.from_numpy(stream[: rows * columns].reshape(columns, rows).T.copy())


def pieces(rows: int, bptt: int, epochs: int, seed: int) -> Sequence[Piece]:
    """Cut the text into the batches of every epoch.

    A length is drawn around `bptt`, or one time in twenty around half of it, with a standard
    deviation of 5 words; at least 5, where the text does not end. So the number of batches in an
    epoch is random; a run has the expected number of all of them, so that seeds can be compared,
    and its last epoch may end a little early or late.

    Example:
        >>> cut = pieces(rows=1000, bptt=70, epochs=2, seed=0)
        >>> cut[0].start, cut[1].start == cut[0].length, len(cut)
        (0, True, 30)
    """
    # Lengths are rounded down, by a half on average.
    mean = max(5.0, 0.95 * bptt + 0.05 * bptt / 2 - 0.5)
    steps = round(epochs * (rows - 1) / mean + epochs / 2)
    cut: list[Piece] = []
    epoch = 0
    while len(cut) < steps:
        rng = np.random.default_rng((seed, epoch))
        start = 0
        while start < rows - 1 and len(cut) < steps:
            around = bptt if rng.random() < 0.95 else bptt / 2
            length = min(max(5, int(rng.normal(around, 5))), rows - 1 - start)
            cut.append(Piece(epoch, start, length))
            start += length
        epoch += 1
    return cut
