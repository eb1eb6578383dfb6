"""Windows of text: splits, units, vocabulary, and a few of them in batches of any size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from made_problems import smoke, train

from hvadam_bench import tasks
from hvadam_bench.tasks.language.corpora import corpus, synthetic
from hvadam_bench.tasks.language.windows import FewWindowsProblem, WindowProblem

pytestmark = pytest.mark.usefixtures("no_data_folder")  # the smallest scale needs no files

WINDOWS = ["shakespeare_lstm", "pydoc_lstm", "wikitext2_transformer", "shakespeare_gpt"]


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_stay_inside_their_splits(name: str) -> None:
    problem, settings = smoke(name), tasks.get(name).scales["smoke"]
    assert isinstance(problem, WindowProblem)
    text = corpus(
        settings["data"], settings["tokens"], settings["evaluated"], settings.get("vocabulary")
    )
    for split in ("train", "valid", "test"):
        windows = problem.windows[split]
        stream = torch.from_numpy(getattr(text, split))
        joined = torch.cat([windows[:, :-1].flatten(), windows[-1, -1:]])
        assert torch.equal(joined, stream[: len(joined)])
        assert len(stream) - len(joined) < settings["length"]
    epoch = torch.cat([problem.batch(step) for step in range(problem.batches)])
    assert len(epoch.unique(dim=0)) <= len(problem.windows["train"])
    assert problem.lr_factor(problem.steps) == pytest.approx(0)


def test_units_of_the_measures() -> None:
    problem = smoke("pydoc_lstm")
    for parameter in problem.networks["model"].parameters():
        torch.nn.init.zeros_(parameter)
    measures = problem.evaluate("valid")
    vocabulary = len(corpus("pydoc", None, None, None).vocabulary)
    assert measures["bits_per_character"] == pytest.approx(math.log2(vocabulary), rel=1e-5)
    problem = smoke("ptb_lstm1")
    for parameter in problem.networks["model"].parameters():
        torch.nn.init.zeros_(parameter)
    assert problem.evaluate("valid")["perplexity"] == pytest.approx(
        len(synthetic().vocabulary), rel=1e-5
    )


def test_a_smaller_vocabulary_keeps_the_commonest_words() -> None:
    whole, small = synthetic(), corpus("synthetic", None, None, 10)
    assert len(small.vocabulary) == 10
    assert small.vocabulary[-1] == "<unk>"
    for before, after in zip(whole.test, small.test, strict=True):
        assert small.vocabulary[after] in (whole.vocabulary[before], "<unk>")
    counts = np.bincount(whole.train)
    assert whole.vocabulary[int(counts.argmax())] == small.vocabulary[0]


def few_windows(**changed: Any) -> FewWindowsProblem:
    built = smoke("shakespeare_windows", **changed)
    assert isinstance(built, FewWindowsProblem)
    return built


def gradients(one: FewWindowsProblem, steps: range) -> torch.Tensor:
    """Return the mean over steps of the gradients at the first weights."""
    one.model.zero_grad()
    for step in steps:
        [update] = one.updates(one.batch(step))
        (update.loss / len(steps)).backward()
    found = [p.grad for p in one.model.parameters() if p.grad is not None]
    return torch.cat([grad.flatten() for grad in found])


def test_everything_is_the_same_batch_at_every_step() -> None:
    one = few_windows(batch=0)
    assert one.batch_size == len(one.windows) == 32
    assert torch.equal(one.batch(0), one.windows)
    assert torch.equal(one.batch(17), one.windows)
    [update] = one.updates(one.batch(3))
    assert update.loss.item() == pytest.approx(one.evaluate("valid")["loss"])
    assert one.evaluate("valid") == one.evaluate("test")


@pytest.mark.parametrize("batch", [1, 4, 16, 32])
def test_the_batches_of_an_epoch_have_the_gradient_of_everything_between_them(batch: int) -> None:
    one, whole = few_windows(batch=batch), few_windows(batch=0)
    epoch = 32 // batch
    rows = torch.cat([one.batch(step) for step in range(epoch)])
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, whole.windows.tolist()))
    mean = gradients(one, range(epoch, 2 * epoch))
    torch.testing.assert_close(mean, gradients(whole, range(1)), rtol=1e-3, atol=1e-6)
    assert one.steps == whole.steps  # equal steps at every dose of noise


def test_it_is_single_precision_and_learns() -> None:
    one = few_windows(batch=0)
    assert {p.dtype for p in one.model.parameters()} == {torch.float32}
    before = one.evaluate("valid")["loss"]
    train(one, one.steps)
    assert one.evaluate("valid")["loss"] < 0.7 * before


def test_batches_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"batch must be from 0, .* to 32, got 33\."):
        few_windows(batch=33)
    with pytest.raises(ValueError, match=r"batch must be from 0, .* to 32, got -1\."):
        few_windows(batch=-1)
    with pytest.raises(ValueError, match=r"windows must be at most \d+, all of the text, got"):
        few_windows(windows=10_000_000)
