"""Windows of text: their splits, their units and their vocabulary."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from made_problems import smoke

from hvadam_bench import tasks
from hvadam_bench.problems.corpora import corpus, synthetic
from hvadam_bench.problems.windows import WindowProblem

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
