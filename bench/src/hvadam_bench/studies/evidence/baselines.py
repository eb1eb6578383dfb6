"""What trivial models reach on the mini-batch tasks: whatever was trained there must do better.

Logistic regression on pixels is fitted where a task has images and an interpolated bigram where it
has text, on the same splits that the task's runs have. Nothing is drawn at random; other machines
may round other last digits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from hvadam_bench import tasks
from hvadam_bench.data.text import Corpus
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.evidence.plan import MINIBATCH
from hvadam_bench.tasks.language.corpora import corpus
from hvadam_bench.tasks.vision.classification import ImageProblem

# L-BFGS in logistic regression: the best on the validation split of so many looks is kept.
LOOKS, ITERATIONS = 15, 10
# Rounds of expectation-maximization, which has settled to four digits long before.
ROUNDS = 200

Labelled = tuple[Tensor, Tensor]  # features (n, size), float32, and labels


class Fitted(NamedTuple):
    """Percent right, or mean nats a token, on both splits that nothing was fitted to."""

    valid: float
    test: float
    weights: tuple[float, ...] = ()  # of bigrams, single tokens and chance


def measure(scale: str = "laptop", on_progress: OnProgress = ignore_progress) -> dict[str, Any]:
    """Return what trivial models reach on the mini-batch tasks at one scale, by task.

    Raises:
        DataError: The data of a task is not here.
    """
    found: dict[str, Any] = {}
    for task in MINIBATCH:
        on_progress(task, 0.0)
        found[task] = _fit(task, scale)
        on_progress(task, 1 / len(MINIBATCH))
    return {"scale": scale, "of": found}


def logistic_regression(train: Labelled, valid: Labelled, test: Labelled) -> Fitted:
    """Fit a linear classifier by L-BFGS from zeros, stopped where the validation split is best."""
    features, labels = train
    classes = int(labels.max()) + 1
    weight = torch.zeros(classes, features.shape[1], requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=ITERATIONS, history_size=10, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = cross_entropy(features @ weight.T + bias, labels)
        loss.backward()
        return loss

    def accuracy(split: Labelled) -> float:
        guesses = (split[0] @ weight.T + bias).argmax(1)
        return 100 * (guesses == split[1]).double().mean().item()

    found: list[Fitted] = []
    for _ in range(LOOKS):
        optimizer.step(closure)
        found.append(Fitted(accuracy(valid), accuracy(test)))
    return max(found, key=lambda one: one.valid)


def interpolated_bigram(text: Corpus) -> Fitted:
    """Mix the shares of pairs, of single tokens and of chance in training text.

    The weights are those under which the validation text is likeliest.

    References:
        Jelinek and Mercer, 1980.
    """
    size = len(text.vocabulary)
    single = np.bincount(text.train, minlength=size) / len(text.train)
    pairs, counts = np.unique(_pairs(text.train, size), return_counts=True)
    starts = np.bincount(text.train[:-1], minlength=size)

    def chances(stream: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what each of the three says of every token but the first."""
        asked = _pairs(stream, size)
        at = np.searchsorted(pairs, asked).clip(max=len(pairs) - 1)
        seen = np.where(pairs[at] == asked, counts[at], 0)
        bigram = seen / np.maximum(starts[stream[:-1]], 1)
        return np.stack([bigram, single[stream[1:]], np.full(len(asked), 1 / size)])

    valid = chances(text.valid)
    weights = np.full(3, 1 / 3)
    for _ in range(ROUNDS):
        shares = weights[:, None] * valid
        weights = (shares / shares.sum(axis=0)).mean(axis=1)
    ends = [float(-np.log(weights @ one).mean()) for one in (valid, chances(text.test))]
    return Fitted(ends[0], ends[1], tuple(map(float, weights)))


def _pairs(stream: NDArray[np.int64], vocabulary: int) -> NDArray[np.int64]:
    """Return a number for each token and the one before it."""
    return stream[:-1] * vocabulary + stream[1:]


def _fit(task: str, scale: str) -> dict[str, Any]:
    """Return the trivial model of a task's kind; of text, on all of the validation text."""
    metric, settings = tasks.get(task).metric, tasks.get(task).scales[scale]
    if metric == "accuracy":
        problem = tasks.get(task).build(settings, 0, "standard")
        assert isinstance(problem, ImageProblem)
        splits = [
            (pictures.centred(at).flatten(1).float() / 255 - 0.5, pictures.labels[at])
            for pictures, at in (problem.parts[split] for split in ("train", "valid", "test"))
        ]
        method, digits, ends = "logistic regression on pixels", 2, logistic_regression(*splits)[:2]
    else:
        parts = (settings.get(name) for name in ("tokens", "evaluated", "vocabulary"))
        method, nats = "interpolated bigram", interpolated_bigram(corpus(settings["data"], *parts))
        words = metric == "perplexity"
        digits = 2 if words else 4
        ends = [math.exp(one) if words else one / math.log(2) for one in nats[:2]]
    valid, test = (round(end, digits) for end in ends)
    return {"method": method, "metric": metric, "valid": valid, "test": test}
