"""A plain LSTM over characters."""

from __future__ import annotations

from torch import Tensor, nn


class CharLSTM(nn.Module):
    """An LSTM from characters (columns, length) to logits of the next ones."""

    def __init__(self, vocabulary: int, width: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, layers, batch_first=True)
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, characters: Tensor) -> Tensor:
        """Return the logits (columns, length, vocabulary) of the characters that follow."""
        return self.decoder(self.lstm(self.embedding(characters))[0])
