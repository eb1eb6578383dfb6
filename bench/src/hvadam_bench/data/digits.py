"""Scikit-learn's handwritten digits: grey images that need no download."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor


@dataclass(frozen=True)
class Images:
    """Grey 8×8 images in [0, 1], shaped (n, 1, 8, 8), and their labels 0-9."""

    pixels: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Digits:
    """The digits, in a training and a test part."""

    train: Images
    test: Images


def load() -> Digits:
    """Return the 1797 images of scikit-learn, split 3:1 by class and always the same way."""
    pixels, labels = load_digits(return_X_y=True)
    parts = train_test_split(pixels, labels, test_size=0.25, stratify=labels, random_state=0)
    train_pixels, test_pixels, train_labels, test_labels = parts
    return Digits(_images(train_pixels, train_labels), _images(test_pixels, test_labels))


def _images(pixels: ArrayLike, labels: ArrayLike) -> Images:
    scaled = torch.as_tensor(np.asarray(pixels) / 16, dtype=torch.float32)  # grey levels 0 to 16
    return Images(scaled.reshape(-1, 1, 8, 8), torch.as_tensor(labels, dtype=torch.int64))
