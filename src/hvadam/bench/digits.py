"""Scikit-learn's handwritten digits and small networks for them; knows nothing of optimizers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

BATCH_SIZE = 32


@dataclass(frozen=True)
class Images:
    """Grey 8×8 images in [0, 1], shaped (n, 1, 8, 8), and their labels 0-9."""

    pixels: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Digits:
    """The two parts of the data set."""

    train: Images
    test: Images


def load() -> Digits:
    """The 1797 images that scikit-learn carries, split 3:1 by class and always the same way."""
    pixels, labels = load_digits(return_X_y=True)
    parts = train_test_split(pixels, labels, test_size=0.25, stratify=labels, random_state=0)
    train_pixels, test_pixels, train_labels, test_labels = parts
    return Digits(_images(train_pixels, train_labels), _images(test_pixels, test_labels))


def make_network(seed: int) -> nn.Module:
    """A CNN of 10k weights whose initial values depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):  # leaves the caller's random state as it was
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, 10),
        )


def make_mlp(seed: int) -> nn.Module:
    """A perceptron of 26k weights, likewise."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            *(nn.Flatten(), nn.Linear(64, 128), nn.ReLU()),
            *(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)),
        )


def batches(images: Images, shuffle: torch.Generator) -> Iterator[Images]:
    """One epoch in a new order, without the few images that do not fill a last batch."""
    order = torch.randperm(len(images), generator=shuffle)
    for chosen in order.split(BATCH_SIZE):
        if len(chosen) == BATCH_SIZE:
            yield Images(images.pixels[chosen], images.labels[chosen])


def batch_loss(network: nn.Module, batch: Images) -> Tensor:
    """Mean cross-entropy of a batch, to be differentiated."""
    return cross_entropy(network(batch.pixels), batch.labels)


def mean_loss(network: nn.Module, images: Images) -> float:
    """Mean cross-entropy of all the images, in eval mode."""
    return cross_entropy(_logits(network, images), images.labels).item()


def accuracy(network: nn.Module, images: Images) -> float:
    """Share of the images whose label is the network's first choice, in eval mode."""
    return (_logits(network, images).argmax(dim=1) == images.labels).double().mean().item()


def _logits(network: nn.Module, images: Images) -> Tensor:
    network.eval()
    with torch.no_grad():
        return network(images.pixels)


def _images(pixels: ArrayLike, labels: ArrayLike) -> Images:
    scaled = torch.as_tensor(np.asarray(pixels) / 16, dtype=torch.float32)  # grey levels 0 to 16
    return Images(scaled.reshape(-1, 1, 8, 8), torch.as_tensor(labels, dtype=torch.int64))
