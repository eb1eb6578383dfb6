"""Language modelling on text in columns, the hidden state carried from batch to batch.

Columns of text are read side by side; each batch goes on where the last one ended, and carries the
hidden state. `ColumnProblem` is the plain form of it.

`PennTreebankProblem` reads as AWD-LSTM was published: twenty columns, some 70 words at a time. A
batch's learning rate is scaled by its length. The loss adds to the cross-entropy α·mean(h²) of the
dropped last outputs and β·mean((hₜ − hₜ₋₁)²) of the undropped ones. The weights of the best
validation are those that are tested.

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
from hvadam_bench.tasks._problem import ModelProblem
from hvadam_bench.tasks._spec import Settings, Split, Update, evaluating, fit_batch
from hvadam_bench.tasks.language.corpora import corpus_of
from hvadam_bench.tasks.language.recurrent import AWDLSTM, Dropouts, Output, State

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


class ColumnProblem(ModelProblem):
    """An LSTM of one layer, its embedding also its softmax, without dropout.

    The training text is cut and joined anew at a place of the seed's choice and put into columns,
    which are read `bptt` words at a time, from the beginning again when they end. What is tested
    are the last weights.

    Args:
        settings: "width", "columns", "bptt", "steps", "curve_tokens", what `corpus_of` reads and
            what `ModelProblem` does.
        seed: The run's.
        protocol: "standard".
    """

    def __init__(self, settings: Settings, seed: int, protocol: str) -> None:
        corpus = corpus_of(settings)
        self.protocol = protocol
        super().__init__(lambda: self._network(len(corpus.vocabulary)), settings, seed)
        # A column holds at least a word and the one that follows it.
        self.batch_size = fit_batch(settings, len(corpus.train) // 2, "columns")
        self.bptt = settings["bptt"]
        self._state: State | None = None
        self._read(corpus)

    def _network(self, vocabulary: int) -> AWDLSTM:
        return AWDLSTM(vocabulary, self.settings["width"], dropouts=_NO_DROPOUT)

    def _read(self, corpus: Corpus) -> None:
        """Put the text in columns, and count the steps."""
        # A part is taken of every column: some stretches of a text are far harder than others.
        self.glanced = self.settings["curve_tokens"] // EVALUATED_COLUMNS
        if self.glanced < 2:  # a word and the one that follows it
            fewest, given = 2 * EVALUATED_COLUMNS, self.settings["curve_tokens"]
            raise ValueError(f"curve_tokens must be at least {fewest}, got {given}.")
        begin = int(np.random.default_rng(self.seed).integers(len(corpus.train)))
        self._in_columns(corpus, np.roll(corpus.train, -begin), EVALUATED_COLUMNS)
        self.steps = self.settings["steps"]
        self.batches = math.ceil((len(self.text["train"]) - 1) / self.bptt)

    def _in_columns(self, corpus: Corpus, train: np.ndarray, evaluated: int) -> None:
        self.text: dict[Split, Tensor] = {
            "train": in_columns(train, self.batch_size),
            "valid": in_columns(corpus.valid, evaluated),
            "test": in_columns(corpus.test, evaluated),
        }

    def batch(self, step: int, variant: int = 0) -> ColumnBatch:
        return self._piece(self.text["train"], step % self.batches * self.bptt, self.bptt)

    def updates(self, batch: ColumnBatch) -> Iterator[Update]:
        out = self._out(batch, None if batch.begins else self._state)
        self._state = tuple((h.detach(), c.detach()) for h, c in out.state)
        yield Update(self._loss(out, batch))

    def evaluate(self, split: Split) -> dict[str, float]:
        return self._measures(self.text[split])

    def glance(self) -> dict[str, float]:
        return self._measures(self.text["valid"][: self.glanced])

    def state_dict(self) -> dict[str, Any]:
        return {"hidden": self._state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._state = state["hidden"]

    @torch.no_grad()
    def _measures(self, text: Tensor) -> dict[str, float]:
        """Return the mean cross-entropy of a text read from its beginning, and its perplexity."""
        rows = len(text) - 1
        total, state = 0.0, None
        with evaluating(self.model):
            for start in range(0, rows, self.bptt):
                batch = self._piece(text, start, self.bptt)
                out = self._out(batch, state)
                state = out.state
                total += ColumnProblem._loss(self, out, batch).item() * len(batch.words)
        return {"perplexity": math.exp(total / rows), "loss": total / rows}

    def _piece(self, text: Tensor, start: int, length: int) -> ColumnBatch:
        targets = text[start + 1 : start + length + 1]
        return ColumnBatch(text[start : start + len(targets)], targets, begins=start == 0)

    def _out(self, batch: ColumnBatch, state: State | None) -> Output:
        return self.model(batch.words.to(self._device), state)

    def _loss(self, out: Output, batch: ColumnBatch) -> Tensor:
        return self.model.loss(out.dropped, batch.targets.to(self._device))


class PennTreebankProblem(ColumnProblem):
    """A language model as AWD-LSTM's authors trained it; see the module."""

    def _network(self, vocabulary: int) -> AWDLSTM:
        sizes = {name: self.settings[name] for name in ("width", "hidden", "layers")}
        dropouts = Dropouts(*self.settings["dropouts"])
        inherited = self.protocol == "inherited"
        return AWDLSTM(vocabulary, **sizes, dropouts=dropouts, frozen_recurrence=inherited)

    def _read(self, corpus: Corpus) -> None:
        self._in_columns(corpus, corpus.train, self.settings["evaluation_columns"])
        rows, epochs = len(self.text["train"]), self.settings["epochs"]
        self.pieces = pieces(rows, self.bptt, epochs, self.seed)
        self.steps = len(self.pieces)
        self._best: tuple[float, dict[str, Tensor]] | None = None  # validation loss, weights

    def batch(self, step: int, variant: int = 0) -> ColumnBatch:
        _, start, length = self.pieces[step]
        return self._piece(self.text["train"], start, length)

    def _loss(self, out: Output, batch: ColumnBatch) -> Tensor:
        loss = super()._loss(out, batch) + self.settings["ar"] * out.dropped.square().mean()
        if len(out.raw) > 1:  # a text may end in a batch of one word
            loss = loss + self.settings["tar"] * out.raw.diff(dim=0).square().mean()
        return loss

    def lr_factor(self, step: int) -> float:
        epoch, _, length = self.pieces[step]
        decay = 0.1 ** sum(epoch >= milestone for milestone in self.settings["milestones"])
        return decay * length / self.bptt

    def evaluate(self, split: Split) -> dict[str, float]:
        inherited = self.protocol == "inherited" and split == "valid"
        text = self.text["test" if inherited else split]
        if split == "test" and self._best is not None:
            own = self._weights()
            self.model.load_state_dict(self._best[1])
            measures = self._measures(text)
            self.model.load_state_dict(own)
            return measures
        measures = self._measures(text)
        if split == "valid" and (self._best is None or measures["loss"] < self._best[0]):
            self._best = measures["loss"], self._weights()
        return {**measures, "test_perplexity": measures["perplexity"]} if inherited else measures

    def glance(self) -> dict[str, float]:
        return self.evaluate("valid")

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "best": self._best}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._best = state["best"]


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
