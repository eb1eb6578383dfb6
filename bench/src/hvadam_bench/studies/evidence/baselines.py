"""What trivial models reach on the mini-batch tasks: whatever was trained there must do better.

Logistic regression on pixels is fitted where a task has images and an interpolated bigram where it
has text, on the same splits that the task's runs have. Nothing is drawn at random; other machines
may round other last digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from hvadam_bench import tasks
from hvadam_bench.data.text import Corpus
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.evidence.result import Baseline, Baselines
from hvadam_bench.tasks.language.corpora import corpus
from hvadam_bench.tasks.vision.classification import ImageProblem

# L-BFGS in logistic regression: the best on the validation split of so many looks is kept.
LOOKS, ITERATIONS = 15, 10
# Rounds of expectation-maximization, which has settled to four digits long before.
ROUNDS = 200


class Labelled(NamedTuple):
    """Examples (n, features), float32, and their labels."""

    features: Tensor
    labels: Tensor


class Fitted(NamedTuple):
    """Percent right, or mean nats a token, on both splits that nothing was fitted to."""

    valid: float
    test: float
    weights: tuple[float, ...] = ()  # of bigrams, single tokens and chance


def measure(scale: str = "laptop", on_progress: OnProgress = ignore_progress) -> Baselines:
    """Return the baselines of the mini-batch tasks at one scale.

    Raises:
        DataError: The data of a task is not here.
    """
    found: dict[str, Baseline] = {}
    for task, fit in _FITS.items():
        on_progress(task, 0.0)
        found[task] = fit(task, scale)
        on_progress(task, 1 / len(_FITS))
    return Baselines(scale, found)


def logistic_regression(train: Labelled, valid: Labelled, test: Labelled, classes: int) -> Fitted:
    """Fit a linear classifier by L-BFGS from zeros, stopped where the validation split is best."""
    weight = torch.zeros(classes, train.features.shape[1], requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=ITERATIONS, history_size=10, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = cross_entropy(train.features @ weight.T + bias, train.labels)
        loss.backward()
        return loss

    def accuracy(split: Labelled) -> float:
        with torch.no_grad():
            guesses = (split.features @ weight.T + bias).argmax(1)
            return 100 * (guesses == split.labels).double().mean().item()

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


def _fit_images(task: str, scale: str) -> Baseline:
    problem = tasks.get(task).build(tasks.get(task).scales[scale], 0, "standard")
    assert isinstance(problem, ImageProblem)
    splits: list[Labelled] = []
    for pictures, indices in (problem.parts[split] for split in ("train", "valid", "test")):
        pixels = pictures.centred(indices).flatten(1).float() / 255 - 0.5
        splits.append(Labelled(pixels, pictures.labels[indices]))
    train, valid, test = splits
    classes = int(max(split.labels.max() for split in splits)) + 1
    found = logistic_regression(train, valid, test, classes)
    ends = (round(value, 2) for value in found[:2])
    return Baseline("logistic regression on pixels", tasks.get(task).metric, *ends)


def _fit_text(task: str, scale: str) -> Baseline:
    metric, settings = tasks.get(task).metric, tasks.get(task).scales[scale]
    parts = (settings.get(name) for name in ("tokens", "evaluated", "vocabulary"))
    found = interpolated_bigram(corpus(settings["data"], *parts))
    if metric == "perplexity":
        ends = (round(math.exp(loss), 2) for loss in found[:2])
    else:
        ends = (round(loss / math.log(2), 4) for loss in found[:2])
    return Baseline("interpolated bigram", metric, *ends)


_FITS: dict[str, Callable[[str, str], Baseline]] = {
    "fashion_mnist_60k": _fit_images,
    "cifar10_resnet8": _fit_images,
    "shakespeare_gpt": _fit_text,
    "ptb_lstm128": _fit_text,
}
