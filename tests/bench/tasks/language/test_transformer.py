"""Transformers: their published size, what they look at, and beam search over their outputs."""

from __future__ import annotations

import pytest
import torch

from hvadam_bench.tasks.language.transformer import TransformerLM, Translator, translate
from hvadam_bench.tasks.language.translation import END


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


def test_a_wide_beam_finds_the_best_sentence_of_all() -> None:
    """Against every sentence of up to two words, by their mean log-probability."""
    torch.manual_seed(1)
    model = Translator(7, 6, 8, 16, 2, 1, 0.0).eval()
    with torch.no_grad():
        model.target.weight.mul_(3)  # else all sentences are about as likely
    source = torch.tensor([[3, 4, 2], [5, 2, 0]])
    begin, end, words = 1, 2, [1, 3, 4, 5]

    def score(row: int, sentence: list[int]) -> float:
        given, target = torch.tensor([[begin, *sentence]]), [*sentence, end]
        logits = model(source[row : row + 1], given)[0]
        logits[:, 0] = -torch.inf
        return logits.log_softmax(-1)[range(len(target)), target].mean().item()

    everything = [[], *([a] for a in words), *([a, b] for a in words for b in words)]
    best = [max(everything, key=lambda sentence: score(row, sentence)) for row in (0, 1)]
    # Wide enough that nothing is pruned: as many ends as there are sentences.
    found = translate(model, source, begin=begin, end=end, beam=3, limit=3)
    greedy = translate(model, source, begin=begin, end=end, beam=1, limit=3)
    for row in (0, 1):
        assert score(row, found[row]) >= score(row, greedy[row])
        assert score(row, found[row]) == pytest.approx(score(row, best[row]))


def test_greedy_takes_the_likeliest_word_each_time() -> None:
    torch.manual_seed(2)
    model = Translator(9, 9, 8, 16, 2, 1, 0.0).eval()
    source = torch.tensor([[3, 4, 5, 2]])
    given = [1]
    with torch.no_grad():
        for _ in range(5):
            logits = model(source, torch.tensor([given]))[0, -1]
            logits[0] = -torch.inf
            given.append(int(logits.argmax()))
    expected = given[1:]
    if END in expected:
        expected = expected[: expected.index(END)]
    assert translate(model, source, begin=1, end=END, beam=1, limit=6) == [expected]
