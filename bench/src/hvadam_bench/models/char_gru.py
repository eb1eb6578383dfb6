"""A plain GRU over characters."""

from __future__ import annotations

from torch import Tensor, nn


class CharGRU(nn.Module):
    """A GRU from characters (columns, length) to logits of the next ones."""

    def __init__(self, vocabulary: int, width: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.gru = nn.GRU(width, hidden, batch_first=True)
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, characters: Tensor) -> Tensor:
        """Return the logits (columns, length, vocabulary) of the characters that follow."""
        return self.decoder(self.gru(self.embedding(characters))[0])
