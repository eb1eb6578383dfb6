"""What the tasks on scikit-learn's digits share: everything but the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hvadam_bench.data.digits import Images, load
from hvadam_bench.tasks._schedules import warm_cosine
from hvadam_bench.tasks._spec import Problem, Split, Update, fit_batch

BATCH_SIZE = 32  # of `batches`


@cache
def parts() -> dict[Split, Images]:
    """Return the splits; "valid" is a fifth of the training images, always the same."""
    from sklearn.model_selection import train_test_split

    data = load()
    kept, held = train_test_split(
        np.arange(len(data.train)), test_size=0.2, stratify=data.train.labels, random_state=1
    )
    train, valid = (
        Images(data.train.pixels[index], data.train.labels[index]) for index in (kept, held)
    )
    return {"train": train, "valid": valid, "test": data.test}


class DigitsProblem(Problem):
    """A network that tells ten digits apart, with a constant learning rate and no decay."""

    def __init__(
        self, make: Callable[[int], nn.Module], settings: Mapping[str, Any], seed: int
    ) -> None:
        self.parts = parts()
        self.seed = seed
        self.network = make(seed)
        self.networks = {"model": self.network}
        self.batch_size = fit_batch(settings, len(self.parts["train"]))
        self.batches_per_epoch = len(self.parts["train"]) // self.batch_size
        self.steps = settings["epochs"] * self.batches_per_epoch
        self._shuffled: tuple[int, torch.Tensor] | None = None  # the last epoch asked for

    def batch(self, step: int, variant: int = 0) -> Images:
        epoch, place = divmod(step, self.batches_per_epoch)
        chosen = self._order(epoch)[place * self.batch_size : (place + 1) * self.batch_size]
        train = self.parts["train"]
        return Images(train.pixels[chosen], train.labels[chosen])

    def updates(self, batch: Images) -> Iterator[Update]:
        yield Update(batch_loss(self.network, batch))

    def evaluate(self, split: Split) -> dict[str, float]:
        images = self.parts[split]
        return {
            "accuracy": 100 * accuracy(self.network, images),
            "loss": mean_loss(self.network, images),
        }

    def _order(self, epoch: int) -> torch.Tensor:
        if self._shuffled is None or self._shuffled[0] != epoch:
            order = np.random.default_rng((self.seed, epoch)).permutation(len(self.parts["train"]))
            self._shuffled = epoch, torch.from_numpy(order)
        return self._shuffled[1]


class AnnealedDigitsProblem(DigitsProblem):
    """A network that tells ten digits apart, with a warm-up and a cosine schedule.

    Args:
        make: Seed -> the network.
        settings: "batch_size", "epochs" and "warmup" (a share of the steps) are read.
        seed: The run's.
    """

    def __init__(
        self, make: Callable[[int], nn.Module], settings: Mapping[str, Any], seed: int
    ) -> None:
        super().__init__(make, settings, seed)
        self.rising = round(settings["warmup"] * self.steps)

    def lr_factor(self, step: int) -> float:
        return warm_cosine(step, self.steps, self.rising)


def batches(images: Images, shuffle: torch.Generator) -> Iterator[Images]:
    """Yield one epoch in a new order, without the few images that do not fill a last batch."""
    order = torch.randperm(len(images), generator=shuffle)
    for chosen in order.split(BATCH_SIZE):
        if len(chosen) == BATCH_SIZE:
            yield Images(images.pixels[chosen], images.labels[chosen])


def batch_loss(network: nn.Module, batch: Images) -> Tensor:
    """Return the mean cross-entropy of a batch, to be differentiated."""
    return cross_entropy(network(batch.pixels), batch.labels)


def mean_loss(network: nn.Module, images: Images) -> float:
    """Return the mean cross-entropy of all the images, in eval mode."""
    return cross_entropy(_logits(network, images), images.labels).item()


def accuracy(network: nn.Module, images: Images) -> float:
    """Return the share of the images whose label is the network's first choice, in eval mode."""
    return (_logits(network, images).argmax(dim=1) == images.labels).double().mean().item()


def _logits(network: nn.Module, images: Images) -> Tensor:
    network.eval()
    with torch.no_grad():
        return network(images.pixels)
