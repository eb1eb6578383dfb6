"""Residual networks: 34 or 8 layers for 32×32 images, and the 50 layers of ImageNet."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ResNet(nn.Module):
    """A stem, stages of residual blocks that halve the image between them, a linear head.

    Args:
        block: `Basic` or `Bottleneck`.
        depths: Blocks in each stage.
        classes: Outputs.
        width: Channels of the first stage; 64 in the published networks. Each stage doubles them.
        stem: "small" keeps the image as it is (3×3), "half" halves it (3×3), "imagenet" divides it
            by four (7×7 and a max-pool) and starts convolutions at N(0, 2 / (k²·out)), where the
            others start them as torch does. "small" and "imagenet" are what their experiments were
            published with.

    Example:
        >>> resnet34(classes=10, width=4)(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    References:
        He et al., arXiv:1512.03385, Table 1; the small stem is common practice for CIFAR.
    """

    def __init__(
        self,
        block: type[Basic] | type[Bottleneck],
        depths: Sequence[int],
        classes: int,
        width: int = 64,
        stem: str = "small",
    ) -> None:
        super().__init__()
        kernel, stride = {"small": (3, 1), "half": (3, 2), "imagenet": (7, 2)}[stem]
        layers = [_conv(3, width, kernel, stride), nn.BatchNorm2d(width), nn.ReLU()]
        if stem == "imagenet":
            layers.append(nn.MaxPool2d(3, 2, 1))
        channels = width
        for stage, depth in enumerate(depths):
            for i in range(depth):
                stride = 2 if stage > 0 and i == 0 else 1
                layers.append(block(channels, width * 2**stage, stride))
                channels = width * 2**stage * block.expansion
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(channels, classes)
        if stem == "imagenet":
            for module in self.modules():
                if isinstance(module, nn.Conv2d):
                    nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of images."""
        return self.head(self.features(images).mean(dim=(2, 3)))


class Basic(nn.Module):
    """A residual block of two 3×3 convolutions beside a shortcut."""

    expansion = 1

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            *(_conv(channels, out, 3, stride), nn.BatchNorm2d(out), nn.ReLU()),
            *(_conv(out, out, 3), nn.BatchNorm2d(out)),
        )
        self.shortcut = _shortcut(channels, out, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the features after the block."""
        return torch.relu(self.residual(x) + self.shortcut(x))


class Bottleneck(nn.Module):
    """A residual block of 1×1, 3×3 and 1×1 convolutions; the 3×3 has the stride."""

    expansion = 4

    def __init__(self, channels: int, inner: int, stride: int) -> None:
        super().__init__()
        out = self.expansion * inner
        self.residual = nn.Sequential(
            *(_conv(channels, inner, 1), nn.BatchNorm2d(inner), nn.ReLU()),
            *(_conv(inner, inner, 3, stride), nn.BatchNorm2d(inner), nn.ReLU()),
            *(_conv(inner, out, 1), nn.BatchNorm2d(out)),
        )
        self.shortcut = _shortcut(channels, out, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the features after the block."""
        return torch.relu(self.residual(x) + self.shortcut(x))


def resnet34(classes: int, width: int = 64, depths: Sequence[int] = (3, 4, 6, 3)) -> ResNet:
    """Build ResNet34 for images of 32×32; fewer blocks make a smaller one of its kind."""
    return ResNet(Basic, depths, classes, width, stem="small")


def resnet8(classes: int, width: int = 32) -> ResNet:
    """Build a ResNet of 8 layers for images of 32×32, which its stem halves."""
    return ResNet(Basic, (1, 1, 1), classes, width, stem="half")


def resnet50(classes: int, width: int = 64, depths: Sequence[int] = (3, 4, 6, 3)) -> ResNet:
    """Build ResNet50 for images of 224×224."""
    return ResNet(Bottleneck, depths, classes, width, stem="imagenet")


def _conv(channels: int, out: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(channels, out, kernel, stride, padding=kernel // 2, bias=False)


def _shortcut(channels: int, out: int, stride: int) -> nn.Module:
    if stride == 1 and channels == out:
        return nn.Identity()
    return nn.Sequential(_conv(channels, out, 1, stride), nn.BatchNorm2d(out))
