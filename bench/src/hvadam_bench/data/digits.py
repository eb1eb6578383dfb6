"""Scikit-learn's handwritten digits: grey images that need no download."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor


class Digits(NamedTuple):
    """Grey 8×8 images in [0, 1], shaped (n, 1, 8, 8), and their labels 0-9."""

    pixels: Tensor
    labels: Tensor

    def at(self, chosen: Any) -> Digits:
        """Return the digits of these numbers."""
        return Digits(self.pixels[chosen], self.labels[chosen])


def load() -> tuple[Digits, Digits]:
    """Return the 1797 images for training and testing, split 3:1 by class, always the same way."""
    pixels, labels = load_digits(return_X_y=True)
    levels = np.asarray(pixels, dtype=np.float32).reshape(-1, 1, 8, 8) / 16  # from 0 to 16
    parts = train_test_split(levels, labels, test_size=0.25, stratify=labels, random_state=0)
    train_levels, test_levels, train_labels, test_labels = map(torch.as_tensor, parts)
    return Digits(train_levels, train_labels), Digits(test_levels, test_labels)
