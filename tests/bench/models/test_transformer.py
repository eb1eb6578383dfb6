"""Transformers: their published size, and what they look at."""

from __future__ import annotations

import torch

from hvadam_bench.models.transformer import TransformerLM, Translator


def test_the_translator_has_the_published_size() -> None:
    with torch.device("meta"):
        model = Translator(8848, 6632)
    assert sum(p.numel() for p in model.parameters()) == 39_469_056


def test_the_translator_looks_at_no_padding_and_no_future() -> None:
    torch.manual_seed(0)
    model = Translator(9, 9, 8, 16, 2, 2, 0.0).eval()
    source, target = torch.tensor([[3, 4, 5]]), torch.tensor([[1, 6, 7]])
    whole = model(source, target)
    padded = model(torch.tensor([[3, 4, 5, 0, 0]]), torch.tensor([[1, 6, 7, 0]]))
    torch.testing.assert_close(padded[:, :3], whole)
    changed = model(source, torch.tensor([[1, 6, 8]]))
    torch.testing.assert_close(changed[:, :2], whole[:, :2])
    assert not torch.allclose(changed[:, 2], whole[:, 2])
    language = TransformerLM(9, 8, 16, 2, 2, 0.0).eval()
    one, other = language(torch.tensor([[1, 2, 3]])), language(torch.tensor([[1, 2, 4]]))
    torch.testing.assert_close(one[:, :2], other[:, :2])
