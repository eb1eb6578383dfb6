"""Text in columns: which words a batch has, what is carried, what the measure is a mean of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from made_problems import smoke, train
from torch.nn.functional import cross_entropy

from hvadam_bench.problems.columns import EVALUATED_COLUMNS, ColumnProblem
from hvadam_bench.problems.corpora import synthetic


def problem(**changed: Any) -> ColumnProblem:
    built = smoke("ptb_lstm128", **changed)
    assert isinstance(built, ColumnProblem)
    return built


def test_batches_go_on_where_the_last_one_ended_through_all_of_the_text() -> None:
    one = problem(columns=10, bptt=20)
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
    one = problem()
    assert one._state is None
    train(one, 2)
    after = one._state
    assert after is not None
    carried, _ = one._loss(one.batch(2), after)
    [update] = one.updates(one.batch(2))
    assert update.loss.item() == carried.item()
    [update] = one.updates(one.batch(0))
    fresh, _ = one._loss(one.batch(0), None)
    assert update.loss.item() == fresh.item()


def test_the_measure_is_the_mean_over_all_words_of_a_text_read_at_once() -> None:
    one = problem(curve_tokens=500)
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
    assert math.isfinite(problem(curve_tokens=2 * EVALUATED_COLUMNS).glance()["loss"])
    with pytest.raises(ValueError, match=r"curve_tokens must be at least 40, got 39\."):
        problem(curve_tokens=39)
