"""DenseNet121 for images of 32×32."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class DenseNet(nn.Module):
    """Blocks of layers that each read all the features before them and add `growth` of their own.

    Between blocks, a 1×1 convolution halves the features and average pooling the image.

    Args:
        classes: Outputs.
        growth: Features that each layer adds; 32 in the published network.
        depths: Layers in each block; (6, 12, 24, 16) is DenseNet121.

    Example:
        >>> DenseNet(classes=10, growth=4, depths=(1, 2, 1, 1))(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    References:
        Huang et al., arXiv:1608.06993, Table 1, with a 3×3 stem of 2·growth channels.
    """

    def __init__(
        self, classes: int, growth: int = 32, depths: Sequence[int] = (6, 12, 24, 16)
    ) -> None:
        super().__init__()
        channels = 2 * growth
        layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1, bias=False)]
        for block, depth in enumerate(depths):
            for _ in range(depth):
                layers.append(_Layer(channels, growth))
                channels += growth
            if block + 1 < len(depths):
                layers += [*_activated(channels, channels // 2, 1), nn.AvgPool2d(2)]
                channels //= 2
        self.features = nn.Sequential(*layers, nn.BatchNorm2d(channels), nn.ReLU())
        self.head = nn.Linear(channels, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of images."""
        return self.head(self.features(images).mean(dim=(2, 3)))


class _Layer(nn.Module):
    """A 1×1 bottleneck of 4·growth channels, then a 3×3 convolution to `growth` new features."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.new = nn.Sequential(
            *_activated(channels, 4 * growth, 1), *_activated(4 * growth, growth, 3)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((self.new(x), x), dim=1)


def _activated(channels: int, out: int, kernel: int) -> list[nn.Module]:
    conv = nn.Conv2d(channels, out, kernel, padding=kernel // 2, bias=False)
    return [nn.BatchNorm2d(channels), nn.ReLU(), conv]
