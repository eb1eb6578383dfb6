"""VGG11 without batch norm, as the CIFAR experiments of AdaBelief and its successors have it."""

from __future__ import annotations

import math

from torch import Tensor, nn

# Configuration A of the VGG paper in units of the first layer's channels; 0 halves the image.
_LAYERS = (1, 0, 2, 0, 4, 4, 0, 8, 8, 0, 8, 8, 0)


class VGG11(nn.Module):
    """Eight convolutions and a head of three linear layers, for images of 32×32.

    Convolution weights start as N(0, 2 / (k²·out)) and their biases at 0; the head starts as torch
    has it.

    Args:
        classes: Outputs.
        width: Channels of the first layer; the published network has 64.
        dropout: Before each of the head's two hidden layers.

    Example:
        >>> import torch
        >>> VGG11(classes=10, width=4)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    References:
        Simonyan & Zisserman, arXiv:1409.1556, Table 1, column A.
    """

    def __init__(self, classes: int, width: int = 64, dropout: float = 0.5) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for factor in _LAYERS:
            if factor == 0:
                layers.append(nn.MaxPool2d(2))
            else:
                layers += [nn.Conv2d(channels, factor * width, 3, padding=1), nn.ReLU()]
                channels = factor * width
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(
            *(nn.Dropout(dropout), nn.Linear(channels, channels), nn.ReLU()),
            *(nn.Dropout(dropout), nn.Linear(channels, channels), nn.ReLU()),
            nn.Linear(channels, classes),
        )
        for module in self.features:
            if isinstance(module, nn.Conv2d):
                nn.init.normal_(module.weight, std=math.sqrt(2 / (9 * module.out_channels)))
                assert module.bias is not None
                nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of images."""
        return self.head(self.features(images).flatten(1))
