"""Language modelling on windows of text, each of which starts from nothing.

So any batch can be made at any time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hvadam_bench.tasks._problem import ModelProblem
from hvadam_bench.tasks._spec import Settings, Split, Update, evaluating, fit_batch, run_length
from hvadam_bench.tasks.language.corpora import corpus_of
from hvadam_bench.tasks.language.recurrent import CharacterRNN
from hvadam_bench.tasks.language.transformer import TransformerLM


class NextTokenProblem(ModelProblem):
    """A model that predicts each next token of a window of text.

    Args:
        network: "lstm", "gru" or "transformer", of the sizes that the settings have.
        settings: Besides the sizes, what `corpus_of` and `ModelProblem` read.
        seed: The run's.
    """

    def __init__(self, network: str, settings: Settings, seed: int) -> None:
        self.corpus = corpus_of(settings)
        super().__init__(lambda: self._network(network), settings, seed)

    def _network(self, network: str) -> nn.Module:
        """Build the network; a transformer is four times as wide inside unless told otherwise."""
        vocabulary, width = len(self.corpus.vocabulary), self.settings["width"]
        layers = self.settings.get("layers", 1)
        if network == "transformer":
            inner, dropout = (
                self.settings.get("inner", 4 * width),
                self.settings.get("dropout", 0.0),
            )
            heads = self.settings["heads"]
            return TransformerLM(vocabulary, width, inner, heads, layers, dropout)
        kind = {"lstm": nn.LSTM, "gru": nn.GRU}[network]
        return CharacterRNN(kind, vocabulary, width, self.settings["hidden"], layers)

    def updates(self, batch: Tensor) -> Iterator[Update]:
        yield Update(self._loss(batch))

    def _loss(self, batch: Tensor) -> Tensor:
        batch = batch.to(self._device)
        logits = self.model(batch[:, :-1])
        return cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


class WindowProblem(NextTokenProblem):
    """A model that learns shuffled windows of a text, and is tested on others.

    The measure is the perplexity of words, where the settings have a "vocabulary", and the bits per
    character otherwise.

    Args:
        network: As `NextTokenProblem` has it.
        settings: Also "length", "batch_size" and "epochs" or "steps".
        seed: The run's.
        protocol: "standard".
    """

    def __init__(self, network: str, settings: Settings, seed: int, protocol: str) -> None:
        super().__init__(network, settings, seed)
        self.windows: dict[Split, Tensor] = {
            "train": cut_windows(self.corpus.train, settings["length"]),
            "valid": cut_windows(self.corpus.valid, settings["length"]),
            "test": cut_windows(self.corpus.test, settings["length"]),
        }
        self.batch_size = fit_batch(settings, len(self.windows["train"]))
        self.batches = len(self.windows["train"]) // self.batch_size
        self.steps = run_length(settings, self.batches)

    def batch(self, step: int, variant: int = 0) -> Tensor:
        windows = self.windows["train"]
        return windows[self.drawn(len(windows), step)]

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        windows = self.windows[split]
        parts = windows.split(self.batch_size)
        with evaluating(self.model):
            loss = sum(self._loss(part).item() * len(part) for part in parts) / len(windows)
        if "vocabulary" in self.settings:
            return {"perplexity": math.exp(loss), "loss": loss}
        return {"bits_per_character": loss / math.log(2), "loss": loss}


class FewWindowsProblem(NextTokenProblem):
    """An LSTM that learns a fixed set of windows by heart: the noise is in the batch.

    Both splits are the loss over all the windows, at every batch size the same: optimization alone
    is judged, and runs which differ in their batch size alone show what noise does to an optimizer.

    Args:
        settings: "width", "hidden", "windows", "length", "batch" (0 for all the windows) and
            "steps". The training text is read, from the beginning.
        seed: The run's.
        protocol: "standard".
    """

    def __init__(self, settings: Settings, seed: int, protocol: str) -> None:
        count, batch = settings["windows"], settings["batch"]
        if not 0 <= batch <= count:
            raise ValueError(f"batch must be from 0, for all windows, to {count}, got {batch}.")
        super().__init__("lstm", settings, seed)
        self.windows = cut_windows(self.corpus.train, settings["length"])[:count]
        if len(self.windows) < count:
            raise ValueError(
                f"windows must be at most {len(self.windows)}, all of the text, got {count}."
            )
        self.batch_size, self.steps = batch or count, settings["steps"]
        self.batches = count // self.batch_size

    def batch(self, step: int, variant: int = 0) -> Tensor:
        chosen = self.drawn(len(self.windows), step)
        return self.windows[chosen.sort().values]  # all of them in one order

    @torch.no_grad()
    def evaluate(self, split: Split) -> dict[str, float]:
        """Return the loss over all windows, whichever split is asked for."""
        return {"loss": self._loss(self.windows).item()}


def cut_windows(stream: np.ndarray, length: int) -> Tensor:
    """Cut a stream into windows that share one token; its last few tokens are left out."""
    starts = np.arange(0, len(stream) - length, length)
    return torch.from_numpy(stream[starts[:, None] + np.arange(length + 1)])
