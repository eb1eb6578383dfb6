"""A small convolutional network for grey images."""

from __future__ import annotations

from torch import nn


def small_cnn(classes: int, width: int = 16, size: int = 28) -> nn.Sequential:
    """Build two convolutions with max-pools and two linear layers, as torch starts them.

    Args:
        classes: Outputs.
        width: Channels of the first convolution; the second has twice as many.
        size: Height and width of the images.

    Example:
        >>> import torch
        >>> small_cnn(classes=10)(torch.zeros(2, 1, 28, 28)).shape
        torch.Size([2, 10])
    """
    return nn.Sequential(
        *(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(2 * width * (size // 4) ** 2, 8 * width), nn.ReLU()),
        nn.Linear(8 * width, classes),
    )
