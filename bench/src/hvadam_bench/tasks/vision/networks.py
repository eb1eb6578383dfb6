"""Convolutional networks: two layers for grey images, VGG11, ResNets and DenseNet121."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

# VGG11's configuration in units of the first layer's channels; 0 halves the image.
_VGG_LAYERS = (1, 0, 2, 0, 4, 4, 0, 8, 8, 0, 8, 8, 0)


def small_cnn(classes: int, width: int = 16, size: int = 28) -> nn.Sequential:
    """Build two convolutions with max-pools and two linear layers, as torch starts them."""
    return nn.Sequential(
        *(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(2 * width * (size // 4) ** 2, 8 * width), nn.ReLU()),
        nn.Linear(8 * width, classes),
    )


class VGG11(nn.Module):
    """Eight convolutions and a head of three linear layers, for images of 32×32, no batch norm.

    It is as the CIFAR experiments of AdaBelief and its successors have it. Convolution weights
    start as N(0, 2 / (k²·out)) and their biases at 0; the head starts as torch has it, with dropout
    before each of its two hidden layers.

    References:
        Simonyan & Zisserman, arXiv:1409.1556, Table 1, column A.
    """

    def __init__(self, classes: int, width: int = 64, dropout: float = 0.5) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for factor in _VGG_LAYERS:
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


class _Residual(nn.Module):
    """Convolutions with batch norm, a ReLU between each two, beside a shortcut."""

    def __init__(self, channels: int, stride: int, *convs: tuple[int, int, int]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = channels
        for out, kernel, own in convs:
            layers += [_conv(before, out, kernel, own), nn.BatchNorm2d(out), nn.ReLU()]
            before = out
        self.residual = nn.Sequential(*layers[:-1])
        self.shortcut = nn.Identity()
        if stride != 1 or channels != before:
            self.shortcut = nn.Sequential(
                _conv(channels, before, 1, stride), nn.BatchNorm2d(before)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Return the features after the block."""
        return torch.relu(self.residual(x) + self.shortcut(x))


class Basic(_Residual):
    """A residual block of two 3×3 convolutions beside a shortcut."""

    expansion = 1

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__(channels, stride, (out, 3, stride), (out, 3, 1))


class Bottleneck(_Residual):
    """A residual block of 1×1, 3×3 and 1×1 convolutions; the 3×3 has the stride."""

    expansion = 4

    def __init__(self, channels: int, inner: int, stride: int) -> None:
        super().__init__(channels, stride, (inner, 1, 1), (inner, 3, stride), (4 * inner, 1, 1))


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


class DenseNet(nn.Module):
    """DenseNet121 for images of 32×32: each layer reads all the features before it.

    It adds `growth` of its own to them. Between blocks, a 1×1 convolution halves the features and
    average pooling the image.

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
                layers.append(_DenseLayer(channels, growth))
                channels += growth
            if block + 1 < len(depths):
                layers += [*_activated(channels, channels // 2, 1), nn.AvgPool2d(2)]
                channels //= 2
        self.features = nn.Sequential(*layers, nn.BatchNorm2d(channels), nn.ReLU())
        self.head = nn.Linear(channels, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of images."""
        return self.head(self.features(images).mean(dim=(2, 3)))


class _DenseLayer(nn.Module):
    """A 1×1 bottleneck of 4·growth channels, then a 3×3 convolution to `growth` new features."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.new = nn.Sequential(
            *_activated(channels, 4 * growth, 1), *_activated(4 * growth, growth, 3)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((self.new(x), x), dim=1)


def _activated(channels: int, out: int, kernel: int) -> list[nn.Module]:
    return [nn.BatchNorm2d(channels), nn.ReLU(), _conv(channels, out, kernel)]
