"""Sentence pairs: pieces, BLEU, batches, schedule and the averaged weights."""

from __future__ import annotations

import pytest
import torch
from made_problems import smoke, train

from hvadam_bench.data.text import Pairs, Translations
from hvadam_bench.tasks.language.translation import (
    END,
    TranslationProblem,
    bleu,
    by_length,
    by_subwords,
    by_words,
)

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
