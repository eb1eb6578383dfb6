"""What problems share: networks and draws that depend on seeds alone, and the usual schedule."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Generator, Tensor, nn

from hvadam_bench.tasks._spec import Problem, Settings

Network = TypeVar("Network", bound=nn.Module)


def seeded(seed: int, make: Callable[[], Network]) -> Network:
    """Build a network whose initial weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def seeded_generator(*key: object) -> Generator:
    """Return a generator of its own for each key."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return Generator().manual_seed(int.from_bytes(digest[:8], "little"))


@lru_cache(maxsize=3)
def shuffled(count: int, *key: object) -> Tensor:
    """Return the order in which an epoch sees so many examples, one for each key."""
    return torch.randperm(count, generator=seeded_generator("order", *key))


@lru_cache(maxsize=3)
def permuted(count: int, seed: int, epoch: int) -> Tensor:
    """Return the order of an epoch as NumPy draws it, for the tasks that began with that."""
    return torch.from_numpy(np.random.default_rng((seed, epoch)).permutation(count))


def warm_cosine(step: int, steps: int, rising: int) -> float:
    """Return a factor that rises linearly for some steps, then falls to 0 along half a cosine.

    Example:
        >>> [round(warm_cosine(step, 6, 2), 2) for step in range(7)]
        [0.5, 1.0, 1.0, 0.85, 0.5, 0.15, 0.0]
    """
    if step < rising:
        return (step + 1) / rising
    done = (step - rising) / max(1, steps - rising)
    return (1 + math.cos(math.pi * done)) / 2


class ModelProblem(Problem):
    """A problem of one network, whose learning rate follows `warm_cosine`.

    Args:
        make: () -> the network; called under the run's seed.
        settings: "warmup" (a share of the steps), "weight_decay" and "max_grad_norm" are read,
            where there are any.
        seed: The run's.
    """

    batches: int  # of an epoch, for problems that have epochs

    def __init__(self, make: Callable[[], nn.Module], settings: Settings, seed: int) -> None:
        self.settings, self.seed = settings, seed
        self.model: Any = seeded(seed, make)
        self.networks = {"model": self.model}
        self.weight_decay = settings.get("weight_decay", 0.0)
        self.max_grad_norm = settings.get("max_grad_norm")

    @property
    def rising(self) -> int:
        """Return the steps over which the rate rises."""
        return round(self.settings.get("warmup", 0.0) * self.steps)

    def lr_factor(self, step: int) -> float:
        return warm_cosine(step, self.steps, self.rising)

    def _weights(self) -> dict[str, Tensor]:
        """Return a copy of the network's weights and buffers, by name."""
        return {name: value.clone() for name, value in self.model.state_dict().items()}

    def drawn(self, count: int, step: int) -> Tensor:
        """Return the numbers of the examples that a step sees: its part of a shuffled epoch."""
        epoch, place = divmod(step, self.batches)
        order = permuted(count, self.seed, epoch)
        return order[place * self.batch_size : (place + 1) * self.batch_size]
