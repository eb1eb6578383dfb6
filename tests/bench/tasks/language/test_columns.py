"""Text in columns: protocol, loss, hidden state and pieces, and what the measure is a mean of."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from made_problems import smoke, train
from torch.nn.functional import cross_entropy

from hvadam_bench import tasks
from hvadam_bench.tasks.language.columns import (
    EVALUATED_COLUMNS,
    ColumnProblem,
    PennTreebankProblem,
    pieces,
)
from hvadam_bench.tasks.language.corpora import synthetic

pytestmark = pytest.mark.usefixtures("no_data_folder")  # the smallest scale needs no files

PTB = ["ptb_lstm1", "ptb_lstm2", "ptb_lstm3"]


@pytest.mark.parametrize("name", PTB)
def test_ptb_keeps_to_the_published_protocol(name: str) -> None:
    settings = tasks.get(name).scales["paper"]
    assert settings["dropouts"] == [0.1, 0.4, 0.25, 0.4, 0.5]
    assert (settings["columns"], settings["evaluation_columns"], settings["bptt"]) == (20, 1, 70)
    assert (settings["epochs"], settings["milestones"]) == (200, [100, 145])
    assert (settings["ar"], settings["tar"]) == (2.0, 1.0)
    assert (settings["max_grad_norm"], settings["weight_decay"]) == (0.25, 1.2e-6)


@pytest.mark.parametrize("protocol", ["standard", "inherited"])
def test_recurrent_weights_learn_unless_inherited(protocol: str) -> None:
    problem = smoke("ptb_lstm2", protocol=protocol)
    [update] = problem.updates(problem.batch(0))
    update.loss.backward()
    for layer in problem.networks["model"].layers:  # pyright: ignore[reportGeneralTypeIssues]
        assert (layer.recurrent_weight.grad is None) == (protocol == "inherited")
        assert layer.input_weight.grad.abs().sum() > 0


def test_inherited_chooses_on_the_test_text_and_says_so() -> None:
    fair, inherited = smoke("ptb_lstm1"), smoke("ptb_lstm1", protocol="inherited")
    assert "test_perplexity" not in fair.evaluate("valid")
    valid, test = inherited.evaluate("valid"), inherited.evaluate("test")
    assert valid["test_perplexity"] == valid["perplexity"] == test["perplexity"]
    assert fair.evaluate("valid")["perplexity"] != fair.evaluate("test")["perplexity"]


def test_ptb_tests_the_weights_of_the_best_validation() -> None:
    problem = smoke("ptb_lstm1")
    train(problem, problem.steps)
    problem.evaluate("valid")
    best = problem.evaluate("test")
    with torch.no_grad():
        for parameter in problem.networks["model"].parameters():
            parameter.mul_(3)
    spoilt = {k: v.clone() for k, v in problem.networks["model"].state_dict().items()}
    problem.evaluate("valid")
    assert problem.evaluate("test") == best
    now = problem.networks["model"].state_dict()
    assert all(torch.equal(spoilt[key], now[key]) for key in now)


def test_ptb_loss_is_the_formula() -> None:
    problem = smoke("ptb_lstm1", dropouts=[0.0] * 5)
    assert isinstance(problem, PennTreebankProblem)
    batch = problem.batch(0)
    [update] = problem.updates(batch)
    out = problem.model(batch.words)
    logits = out.raw @ problem.model.weight.T + problem.model.bias
    picked = logits.log_softmax(-1).gather(-1, batch.targets[..., None])
    steps = out.raw[1:] - out.raw[:-1]
    expected = -picked.mean() + 2 * (out.raw**2).mean() + (steps**2).mean()
    torch.testing.assert_close(update.loss, expected)
    torch.testing.assert_close(batch.words[1:], batch.targets[:-1])


def test_ptb_carries_its_hidden_state_until_the_text_begins_anew() -> None:
    problem = smoke("ptb_lstm1", dropouts=[0.0] * 5, ar=0.0, tar=0.0)
    assert isinstance(problem, PennTreebankProblem)
    first, second = problem.batch(0), problem.batch(1)
    assert (first.begins, second.begins) == (True, False)
    list(problem.updates(first))
    [update] = problem.updates(second)
    words = torch.cat([first.words, second.words])
    out = problem.model(words).raw[len(first.words) :]
    torch.testing.assert_close(update.loss, problem.model.loss(out, second.targets))
    starts = [step for step in range(problem.steps) if problem.batch(step).begins]
    assert len(starts) - problem.settings["epochs"] in (0, 1)  # the last may be barely begun


def test_pieces_cover_the_text_and_scale_the_learning_rate() -> None:
    cut = pieces(rows=5000, bptt=70, epochs=20, seed=3)
    for one, following in pairwise(cut):
        ends = one.start + one.length
        assert (following.epoch, following.start) == (one.epoch, ends) or ends == 4999
    assert abs(cut[-1].epoch + cut[-1].start / 4999 - 20) < 0.5
    lengths = np.array([piece.length for piece in cut])
    assert abs(np.mean(lengths > 52) - 0.95) < 0.04  # others are around a half
    problem = smoke("ptb_lstm1")
    assert isinstance(problem, PennTreebankProblem)
    for step, (epoch, _, length) in enumerate(problem.pieces):
        assert problem.lr_factor(step) == pytest.approx(
            0.1 ** min(max(0, epoch - 3), 2) * length / 20
        )


def column_problem(**changed: Any) -> ColumnProblem:
    built = smoke("ptb_lstm128", **changed)
    assert isinstance(built, ColumnProblem)
    return built


def test_batches_go_on_where_the_last_one_ended_through_all_of_the_text() -> None:
    one = column_problem(columns=10, bptt=20)
    batches = [one.batch(step) for step in range(one.batches)]
    assert [batch.begins for batch in batches] == [True] + [False] * (one.batches - 1)
    words = torch.cat([batch.words for batch in batches])
    targets = torch.cat([batch.targets for batch in batches])
    assert torch.equal(words[1:], targets[:-1])
    # Column after column it is the training text, cut and joined anew somewhere.
    joined = torch.cat([words, targets[-1:]]).T.flatten().tolist()
    text = synthetic().train.tolist()
    assert len(joined) == len(text) - len(text) % 10
    assert any(joined == (text[i:] + text[:i])[: len(joined)] for i in range(len(text)))
    again = one.batch(one.batches)
    assert again.begins
    assert torch.equal(again.words, batches[0].words)


def test_the_state_is_carried_and_dropped_where_the_text_begins() -> None:
    one = column_problem()
    assert one._state is None
    train(one, 2)
    after = one._state
    assert after is not None
    carried = one._loss(one._out(one.batch(2), after), one.batch(2))
    [update] = one.updates(one.batch(2))
    assert update.loss.item() == carried.item()
    [update] = one.updates(one.batch(0))
    fresh = one._loss(one._out(one.batch(0), None), one.batch(0))
    assert update.loss.item() == fresh.item()


def test_the_measure_is_the_mean_over_all_words_of_a_text_read_at_once() -> None:
    one = column_problem(curve_tokens=500)
    train(one, 3)
    valid, test, few = synthetic().valid, synthetic().test, 500 // EVALUATED_COLUMNS
    cases = [
        (valid, few, one.glance),  # of each column the beginning
        (valid, len(valid), lambda: one.evaluate("valid")),
        (test, len(test), lambda: one.evaluate("test")),
    ]
    for stream, shown, measure in cases:
        rows = len(stream) // EVALUATED_COLUMNS
        columns = np.reshape(stream[: rows * EVALUATED_COLUMNS], (EVALUATED_COLUMNS, rows))
        text = torch.from_numpy(columns.T.copy())[:shown]
        with torch.no_grad():
            out = one.model.eval()(text[:-1]).raw
            logits = out @ one.model.weight.T + one.model.bias
            loss = cross_entropy(logits.flatten(0, 1), text[1:].flatten()).item()
        found = measure()
        assert found["loss"] == pytest.approx(loss, rel=1e-5)
        assert found["perplexity"] == pytest.approx(math.exp(loss), rel=1e-5)


def test_too_few_words_to_evaluate_on_are_refused() -> None:
    assert math.isfinite(column_problem(curve_tokens=2 * EVALUATED_COLUMNS).glance()["loss"])
    with pytest.raises(ValueError, match=r"curve_tokens must be at least 40, got 39\."):
        column_problem(curve_tokens=39)
