"""Beam search over a translator's outputs."""

from __future__ import annotations

import torch
from torch import Tensor

from hvadam_bench.models.transformer import Translator


@torch.no_grad()
def translate(
    model: Translator, source: Tensor, *, begin: int, end: int, beam: int, limit: int
) -> list[list[int]]:
    """Translate sentences (n, length): for each the tokens up to the end, that not included.

    Hypotheses compete by their mean log-probability per token, the end included; a beam of 1 is
    greedy. Each step runs the decoder over the whole prefix: simple, and quick enough to measure.

    Args:
        model: In eval mode.
        source: Padded.
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
