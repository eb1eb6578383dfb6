"""The Penn Treebank, read in columns by AWD-LSTM.

Twenty columns of text are read side by side; each batch goes on where the last one ended, for some
70 words, and carries the hidden state. A batch's learning rate is scaled by its length. The loss
adds to the cross-entropy α·mean(h²) of the dropped last outputs and β·mean((hₜ − hₜ₋₁)²) of the
undropped ones. The weights of the best validation are those that are tested.

Under protocol "inherited" two slips of the published code are repeated: the recurrent weights get
no gradient and keep their random values, and "valid" is the test text, so that the best epoch is
chosen where it is reported; the measure is then also called "test_perplexity".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hvadam_bench.data.text import Corpus
from hvadam_bench.models.awd_lstm import AWDLSTM, Dropouts, State
from hvadam_bench.problems.corpora import corpus
from hvadam_bench.tasks._spec import Problem, Split, Update, fit_batch


class Batch(NamedTuple):
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

    def __init__(self, settings: Mapping[str, Any], seed: int, protocol: str) -> None:
        inherited = protocol == "inherited"
        text = corpus(
            settings["data"], settings["tokens"], settings["evaluated"], settings["vocabulary"]
        )
        self.settings = settings
        self.inherited = inherited
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = AWDLSTM(
                len(text.vocabulary),
                settings["width"],
                settings["hidden"],
                settings["layers"],
                Dropouts(*settings["dropouts"]),
                frozen_recurrence=inherited,
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

    def batch(self, step: int, variant: int = 0) -> Batch:
        _, start, length = self.pieces[step]
        text = self.text["train"]
        after = text[start + 1 : start + length + 1]
        return Batch(text[start : start + length], after, begins=start == 0)

    def updates(self, batch: Batch) -> Iterator[Update]:
        state = None if batch.begins else self._state
        out = self.model(batch.words.to(self._device), state)
        self._state = tuple((h.detach(), c.detach()) for h, c in out.state)
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
        was_training = self.model.training
        self.model.eval()
        text = self.text[split].to(self._device)
        length, state, total = self.settings["bptt"], None, 0.0
        for start in range(0, len(text) - 1, length):
            targets = text[start + 1 : start + length + 1]
            out = self.model(text[start : start + len(targets)], state)
            state = out.state
            total += self.model.loss(out.dropped, targets).item() * len(targets)
        self.model.train(was_training)
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

    @property
    def _device(self) -> torch.device:
        return self.model.bias.device


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
