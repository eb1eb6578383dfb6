"""What the tasks on scikit-learn's digits share: everything but the network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import nn

from hvadam.bench import digits
from hvadam.bench.digits import Images
from hvadam.bench.tasks._spec import Problem, Split, Update


@cache
def parts() -> dict[Split, Images]:
    """The demo's two parts, with a fifth of the training images, always the same, held out."""
    from sklearn.model_selection import train_test_split

    data = digits.load()
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
        self.batch_size = settings["batch_size"]
        self.batches_per_epoch = len(self.parts["train"]) // self.batch_size
        self.steps = settings["epochs"] * self.batches_per_epoch
        self._shuffled: tuple[int, torch.Tensor] | None = None  # the last epoch asked for

    def batch(self, step: int, variant: int = 0) -> Images:
        epoch, place = divmod(step, self.batches_per_epoch)
        chosen = self._order(epoch)[place * self.batch_size : (place + 1) * self.batch_size]
        train = self.parts["train"]
        return Images(train.pixels[chosen], train.labels[chosen])

    def updates(self, batch: Images) -> Iterator[Update]:
        yield Update(digits.batch_loss(self.network, batch))

    def evaluate(self, split: Split) -> dict[str, float]:
        images = self.parts[split]
        return {
            "accuracy": 100 * digits.accuracy(self.network, images),
            "loss": digits.mean_loss(self.network, images),
        }

    def _order(self, epoch: int) -> torch.Tensor:
        if self._shuffled is None or self._shuffled[0] != epoch:
            order = np.random.default_rng((self.seed, epoch)).permutation(len(self.parts["train"]))
            self._shuffled = epoch, torch.from_numpy(order)
        return self._shuffled[1]
