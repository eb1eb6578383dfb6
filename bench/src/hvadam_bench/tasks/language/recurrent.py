"""AWD-LSTM, a word-level language model, and plain LSTMs and GRUs over characters.

    words -> embedding -> LSTM -> ... -> LSTM -> softmax over the same embedding

AWD-LSTM is of Merity, Keskar and Socher, 2018. Sizes at the paper's scale: embedding 400, 1150
between layers, the last layer as wide as the embedding, so that their weights can be tied.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, embedding

State = tuple[tuple[Tensor, Tensor], ...]  # (h, c) of each layer


class Dropouts(NamedTuple):
    """The shares of words, inputs, outputs and weights that are dropped."""

    words: float = 0.1  # of the vocabulary, for a whole batch
    inputs: float = 0.4
    between: float = 0.25  # layers
    outputs: float = 0.4
    recurrent: float = 0.5  # of the recurrent weights


PUBLISHED = Dropouts()


class Output(NamedTuple):
    """The last layer's outputs after and before dropout, and the new state."""

    dropped: Tensor
    raw: Tensor
    state: State


class AWDLSTM(nn.Module):
    """A word-level language model of stacked LSTMs with every kind of dropout.

    The embedding and the last layer have one width, the layers between are `hidden` wide. With
    `frozen_recurrence` the recurrent weights are cut off the graph, so that they keep their initial
    values, as the published code does by wrapping them anew at each batch.
    """

    def __init__(
        self,
        vocabulary: int,
        width: int = 400,
        hidden: int = 1150,
        layers: int = 1,
        dropouts: Dropouts = PUBLISHED,
        frozen_recurrence: bool = False,
    ) -> None:
        super().__init__()
        sizes = [width, *[hidden] * (layers - 1), width]
        self.dropouts = dropouts
        self.layers = nn.ModuleList(
            DropConnectLSTM(inputs, outputs, dropouts.recurrent, frozen_recurrence)
            for inputs, outputs in pairwise(sizes)
        )
        self.weight = nn.Parameter(torch.empty(vocabulary, width).uniform_(-0.1, 0.1))
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, words: Tensor, state: State | None = None) -> Output:
        """Return the outputs (length, columns, width) of words (length, columns)."""
        drops = self.dropouts
        x = embedding(words, self._embedding())
        x = self._locked(x, drops.inputs)
        states: list[tuple[Tensor, Tensor]] = []
        raw = x
        for i, layer in enumerate(self.layers):
            raw, new = layer(x, None if state is None else state[i])
            states.append(new)
            is_last = i == len(self.layers) - 1
            x = self._locked(raw, drops.outputs if is_last else drops.between)
        return Output(x, raw, tuple(states))

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross-entropy of the next words, in nats."""
        logits = outputs.flatten(0, 1) @ self.weight.T + self.bias
        return cross_entropy(logits, targets.flatten())

    def _embedding(self) -> Tensor:
        """Return the embedding with whole words dropped, wherever in the batch they stand."""
        if not (self.training and self.dropouts.words):
            return self.weight
        ones = self.weight.new_ones(len(self.weight), 1)
        return self.weight * dropout(ones, self.dropouts.words)

    def _locked(self, x: Tensor, share: float) -> Tensor:
        """Drop with one mask for all places of a sequence."""
        if not (self.training and share):
            return x
        return x * dropout(x.new_ones(1, *x.shape[1:]), share)


class DropConnectLSTM(nn.Module):
    """An LSTM of one layer that drops some of its recurrent weights for a batch."""

    def __init__(self, inputs: int, outputs: int, share: float, frozen: bool) -> None:
        super().__init__()
        self.outputs, self.share, self.frozen = outputs, share, frozen
        bound = 1 / math.sqrt(outputs)  # as nn.LSTM
        self.input_weight, self.recurrent_weight, self.input_bias, self.recurrent_bias = (
            nn.Parameter(torch.empty(4 * outputs, *columns).uniform_(-bound, bound))
            for columns in ([inputs], [outputs], [], [])
        )

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the outputs of a sequence, and the state after it."""
        recurrent = self.recurrent_weight.detach() if self.frozen else self.recurrent_weight
        dropped = dropout(recurrent, self.share, self.training)
        weights = [self.input_weight, dropped, self.input_bias, self.recurrent_bias]
        if state is None:
            zeros = x.new_zeros(1, x.shape[1], self.outputs)
            state = zeros, zeros
        # After the weights: with biases, one layer, no dropout between layers, one direction.
        out, h, c = torch.lstm(x, state, weights, True, 1, 0.0, self.training, False, False)
        return out, (h, c)


class CharacterRNN(nn.Module):
    """An LSTM or a GRU from characters (columns, length) to logits of the next ones."""

    def __init__(
        self,
        kind: type[nn.LSTM] | type[nn.GRU],
        vocabulary: int,
        width: int,
        hidden: int,
        layers: int,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.recurrent = kind(width, hidden, layers, batch_first=True)
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, characters: Tensor) -> Tensor:
        """Return the logits (columns, length, vocabulary) of the characters that follow."""
        return self.decoder(self.recurrent(self.embedding(characters))[0])
