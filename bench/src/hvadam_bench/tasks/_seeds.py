"""Networks and random draws that depend on seeds alone, whatever was drawn before."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import numpy as np
import torch
from torch import Generator, Tensor, nn

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
