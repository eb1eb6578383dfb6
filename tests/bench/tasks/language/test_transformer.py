"""Transformers: their published size, what they look at, and beam search over their outputs."""

from __future__ import annotations

import pytest
import torch
from made_problems import smoke, train

from hvadam_bench import tasks
from hvadam_bench.data.text import Pairs, Translations
from hvadam_bench.tasks.language.recurrent import AWDLSTM, Dropouts
from hvadam_bench.tasks.language.transformer import TransformerLM, Translator, translate
from hvadam_bench.tasks.language.translation import (
    END,
    TranslationProblem,
    bleu,
    by_length,
    by_subwords,
    by_words,
)


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


# AWD-LSTM: its published size, and its dropouts.
@pytest.mark.parametrize(
    ("layers", "parameters"), [(1, 5_293_200), (2, 13_632_400), (3, 24_221_600)]
)
def test_awd_lstm_has_the_published_size(layers: int, parameters: int) -> None:
    settings = tasks.get(f"ptb_lstm{layers}").scales["paper"]
    with torch.device("meta"):
        model = AWDLSTM(10_000, settings["width"], settings["hidden"], settings["layers"])
    assert sum(p.numel() for p in model.parameters()) == parameters


def test_locked_dropout_is_one_mask_and_dropped_words_are_rows() -> None:
    model = AWDLSTM(50, 8, 8, 1, Dropouts(0.5, 0.0, 0.0, 0.5, 0.0))
    words = torch.arange(50).repeat(2, 1)
    zero = model(words).dropped == 0
    assert torch.equal(zero[0], zero[1])
    assert 0 < zero.float().mean() < 1
    rows = (model._embedding() == 0).all(dim=1)
    assert 0 < rows.sum() < 50
    model.eval()
    assert model._embedding() is model.weight


# Sentence pairs: pieces, BLEU, batches, schedule and the averaged weights.
pytestmark = pytest.mark.usefixtures("no_data_folder")  # the smallest scale needs no files


def test_sentences_come_back_from_their_numbers() -> None:
    lines = ["ein hund l@@ äuft .", "zwei hunde laufen ."]
    data = Translations(*[Pairs(lines, lines)] * 3)
    encoded = by_words(data)
    assert encoded.sizes == (16, 16)  # 4 + 9, rounded up
    assert encoded.decode(encoded.splits["train"][0][1][:-1]) == "ein hund läuft ."
    assert encoded.references["test"] == ["ein hund läuft .", "zwei hunde laufen ."]
    assert all(pair[0][-1] == pair[1][-1] == END for pair in encoded.splits["train"])
    pieces = by_subwords(data, size=30)
    assert [pieces.decode(target[:-1]) for _, target in pieces.splits["test"]] == lines


def test_bleu_of_the_same_is_100_and_of_nothing_0() -> None:
    lines = ["two young males are outside near many bushes .", "a girl climbs into a house ."]
    assert bleu(lines, lines, "none") == bleu(lines, lines, "13a") == 100
    assert bleu(["", ""], lines, "none") == 0
    assert 0 < bleu([lines[0], "a boy climbs into a house ."], lines, "none") < 100


def test_batches_of_pairs_fit_and_cover_all() -> None:
    problem = smoke("iwslt14_transformer")
    assert isinstance(problem, TranslationProblem)
    tokens = problem.settings["batch_tokens"]
    chosen = sorted(i for batch in problem.shapes for i in batch)
    assert chosen == list(range(len(problem.pairs.splits["train"])))
    for step in range(problem.batches):
        source, _, target, ends = problem.batch(step)
        assert max(source.numel(), target.numel()) <= tokens
        assert ends == (step == problem.batches - 1)
    assert by_length([([1] * 9, [1] * 9)], tokens=5) == [[0]]  # too long alone: alone


def test_warmup_is_linear_and_then_inverse_square_root() -> None:
    problem = smoke("iwslt14_transformer", warmup=100)
    assert problem.lr_factor(49) == pytest.approx(0.5)
    assert problem.lr_factor(99) == pytest.approx(1)
    assert problem.lr_factor(399) == pytest.approx(0.5)


def test_the_mean_of_the_last_epochs_is_tested() -> None:
    problem = smoke("iwslt14_transformer", average=2)
    assert isinstance(problem, TranslationProblem)
    train(problem, problem.steps)
    state = problem.state_dict()["last"]
    assert len(state) == 2
    own = {k: v.clone() for k, v in problem.model.state_dict().items()}
    assert all(torch.equal(state[-1][key], own[key]) for key in own)
    tested = problem.evaluate("test")
    assert all(torch.equal(value, own[key]) for key, value in problem.model.state_dict().items())
    problem.model.load_state_dict({key: (state[0][key] + state[1][key]) / 2 for key in own})
    problem._last.clear()
    assert problem.evaluate("test") == pytest.approx(tested)


@pytest.mark.slow
def test_a_translator_learns_words() -> None:
    """Word for word, so that BLEU has to come."""
    problem = smoke("iwslt14_transformer", epochs=40, width=32, dropout=0.0)
    train(problem, 200)
    assert problem.evaluate("test")["bleu"] > 20
