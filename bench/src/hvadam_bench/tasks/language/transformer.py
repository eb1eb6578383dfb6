"""Transformers: an encoder-decoder to translate with, and a decoder to model text with.

`Translator` at its defaults, with vocabularies of 8,848 and 6,632, has the 39,469,056 parameters of
fairseq's ``transformer_iwslt_de_en``: normalisation after each part, sinusoidal positions, the
decoder's embedding also its softmax.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, embedding, linear, relu, scaled_dot_product_attention


class Attention(nn.Module):
    """Attention of several heads: (n, length, width) each -> (n, length, width)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        for part in (self.query, self.key, self.value):
            nn.init.xavier_uniform_(part.weight, gain=1 / math.sqrt(2))
        nn.init.xavier_uniform_(self.out.weight)
        for part in (self.query, self.key, self.value, self.out):
            nn.init.zeros_(part.bias)

    def forward(
        self, x: Tensor, source: Tensor, seen: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Return what queries find; where `seen` (n, source length) is False, they do not look."""
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query(x), self.key(source), self.value(source))
        )
        mask = None if seen is None else seen[:, None, None, :]
        mixed = scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """A layer: self-attention, attention to a source if there is one, and two linear maps.

    A share of what each part adds to the stream is dropped. With `norm_first` what a part is given
    is normalised, rather than what it has added to.
    """

    def __init__(
        self, width: int, heads: int, inner: int, share: float, crossed: bool, norm_first: bool
    ) -> None:
        super().__init__()
        self.share, self.norm_first = share, norm_first
        self.own = Attention(width, heads)
        self.cross = Attention(width, heads) if crossed else None
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        for part in (self.up, self.down):
            nn.init.xavier_uniform_(part.weight)
            nn.init.zeros_(part.bias)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if crossed else 2))

    def forward(
        self,
        x: Tensor,
        seen: Tensor | None = None,
        causal: bool = False,
        source: Tensor | None = None,
        source_seen: Tensor | None = None,
    ) -> Tensor:
        """Return the features after the layer."""
        norms = iter(self.norms)
        x = self._add(x, next(norms), lambda y: self.own(y, y, seen, causal))
        if self.cross is not None and source is not None:
            cross = self.cross
            x = self._add(x, next(norms), lambda y: cross(y, source, source_seen))
        return self._add(x, next(norms), lambda y: self.down(relu(self.up(y))))

    def _add(self, x: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        new = dropout(part(norm(x) if self.norm_first else x), self.share, self.training)
        return x + new if self.norm_first else norm(x + new)


class Embedding(nn.Module):
    """Token embeddings, scaled, plus sinusoids of their places."""

    def __init__(self, vocabulary: int, width: int, share: float, padding: int | None) -> None:
        super().__init__()
        self.share = share
        self.weight = nn.Parameter(torch.randn(vocabulary, width) / math.sqrt(width))
        if padding is not None:
            self.weight.data[padding] = 0
        self.padding = padding

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the embeddings of tokens and their places."""
        length, width = tokens.shape[1], self.weight.shape[1]
        x = embedding(tokens, self.weight, self.padding) * math.sqrt(width)
        return dropout(x + positions(length, width).to(x), self.share, self.training)


def positions(length: int, width: int) -> Tensor:
    """Return sines and then cosines of places, of wavelengths from 2π to 20000π."""
    rates = torch.exp(torch.arange(width // 2) * (-math.log(10000.0) / (width // 2 - 1)))
    angles = torch.arange(length)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Translator(nn.Module):
    """An encoder and a decoder, from a source vocabulary to a target one.

    Tokens equal to `padding`, in either vocabulary, are not there.
    """

    def __init__(
        self,
        source: int,
        target: int,
        width: int = 512,
        inner: int = 1024,
        heads: int = 4,
        layers: int = 6,
        share: float = 0.3,
        padding: int = 0,
    ) -> None:
        super().__init__()
        self.padding = padding
        self.source = Embedding(source, width, share, padding)
        self.target = Embedding(target, width, share, padding)
        self.encoder, self.decoder = (
            nn.ModuleList(
                Layer(width, heads, inner, share, crossed, norm_first=False) for _ in range(layers)
            )
            for crossed in (False, True)
        )

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the logits of each target's next token, given sources and targets so far."""
        return self.decode(target, *self.encode(source))

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the decoder looks at, and where there is something to see."""
        seen = source != self.padding
        x = self.source(source)
        for layer in self.encoder:
            x = layer(x, seen)
        return x, seen

    def decode(self, target: Tensor, memory: Tensor, seen: Tensor) -> Tensor:
        """Return the logits of targets; padding stands behind, where no earlier place looks."""
        x = self.target(target)
        for layer in self.decoder:
            x = layer(x, causal=True, source=memory, source_seen=seen)
        return linear(x, self.target.weight)


class TransformerLM(nn.Module):
    """A decoder from tokens to logits of the next ones; normalises first, embedding tied."""

    def __init__(
        self, vocabulary: int, width: int, inner: int, heads: int, layers: int, share: float
    ) -> None:
        super().__init__()
        self.embedding = Embedding(vocabulary, width, share, padding=None)
        self.layers = nn.ModuleList(
            Layer(width, heads, inner, share, crossed=False, norm_first=True) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits (n, length, vocabulary) of the tokens that follow."""
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, causal=True)
        return linear(self.norm(x), self.embedding.weight)


@torch.no_grad()
def translate(
    model: Translator, source: Tensor, *, begin: int, end: int, beam: int, limit: int
) -> list[list[int]]:
    """Translate sentences (n, length): for each the tokens up to the end, that not included.

    Hypotheses compete by their mean log-probability per token, the end included; a beam of 1 is
    greedy. Each step runs the decoder over the whole prefix: simple, and quick enough to measure.

    Args:
        model: The translator, in eval mode.
        source: The sentences, padded.
        begin: The token that the decoder starts from.
        end: The token that ends a sentence.
        beam: Hypotheses kept for each sentence.
        limit: Tokens to stop after.
    """
    n = len(source)
    memory, seen = (part.repeat_interleave(beam, dim=0) for part in model.encode(source))
    tokens = torch.full((n * beam, 1), begin, device=source.device)
    scores = torch.full((n, beam), -torch.inf, device=source.device)
    scores[:, 0] = 0  # all hypotheses are the same at first
    best: list[tuple[float, list[int]]] = [(-torch.inf, [])] * n
    finished = [0] * n
    for length in range(1, limit + 1):
        logits = model.decode(tokens, memory, seen)[:, -1]
        logits[:, model.padding] = -torch.inf
        steps = logits.log_softmax(-1)
        if length == limit:  # what has not ended by now has to
            others = torch.arange(steps.shape[-1], device=steps.device) != end
            steps = steps.masked_fill(others, -torch.inf)
        steps = steps.view(n, beam, -1)
        vocabulary = steps.shape[-1]
        # Twice as many, for at most one end of each hypothesis can be among them.
        totals, flat = (scores[:, :, None] + steps).flatten(1).topk(2 * beam)
        parents, words = flat // vocabulary, flat % vocabulary
        ends = words == end
        for i, rank in ends[:, :beam].nonzero().tolist():
            score = totals[i, rank].item() / length
            if finished[i] < beam and score > best[i][0]:
                row = i * beam + int(parents[i, rank])
                best[i] = score, tokens[row, 1:].tolist()
            finished[i] += 1
        if min(finished) >= beam:
            break
        order = ends.long().argsort(dim=1, stable=True)[:, :beam]  # what goes on, best first
        scores = totals.gather(1, order)
        rows = parents.gather(1, order) + torch.arange(n, device=source.device)[:, None] * beam
        tokens = torch.cat([tokens[rows.flatten()], words.gather(1, order).view(-1, 1)], dim=1)
    return [found for _, found in best]
