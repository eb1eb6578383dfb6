"""SN-GAN's residual networks for small images, told which class to draw or to judge.

The discriminator's weights are divided by their largest singular value, found by one power
iteration in each training pass and none in eval mode. Torch's own parametrization does it: its
singular vectors are buffers, so that checkpoints have them and deep copies have their own; they are
drawn once, when the network is built, and its passes draw nothing.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate, relu
from torch.nn.utils.parametrizations import spectral_norm

Shortcut = Literal["plain", "rectified"]

_BATCH_NORM_EPS = 1e-4
_SPECTRAL_NORM_EPS = 1e-6


class Generator(nn.Module):
    """A generator of images of given classes in [-1, 1]: residual blocks that double the size.

    Args:
        latent: Entries of a latent vector.
        width: A quarter of the channels of every block.
        size: Height and width of the images: 8, 16, 32 and so on.
        channels: Of the images.
        classes: How many there are.

    Example:
        >>> generator = Generator(latent=128, width=64, size=32, channels=3, classes=10)
        >>> sum(p.numel() for p in generator.parameters())
        4304387
        >>> generator(torch.zeros(2, 128), torch.tensor([0, 9])).shape
        torch.Size([2, 3, 32, 32])
    """

    def __init__(self, latent: int, width: int, size: int, channels: int, classes: int) -> None:
        super().__init__()
        doublings = size.bit_length() - 3
        if doublings < 1 or 4 * 2**doublings != size:
            raise ValueError(f"SN-GAN: size must be a power of two from 8 on, got {size}.")
        inner = 4 * width
        self.start = nn.Linear(latent, inner * 4 * 4)
        self.blocks = nn.ModuleList(Doubling(inner, classes) for _ in range(doublings))
        self.norm = nn.BatchNorm2d(inner, _BATCH_NORM_EPS)
        self.end = nn.Conv2d(inner, channels, 3, padding=1)
        self.apply(_orthogonal)

    def forward(self, latents: Tensor, labels: Tensor) -> Tensor:
        """Return the images of latent vectors and classes."""
        x = self.start(latents).unflatten(1, (-1, 4, 4))
        for block in self.blocks:
            x = block(x, labels)
        return torch.tanh(self.end(relu(self.norm(x))))


class Doubling(nn.Module):
    """A residual block of two 3×3 convolutions, at twice the size."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.first_norm = ClassNorm(channels, classes)
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second_norm = ClassNorm(channels, classes)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.shortcut = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        """Return the features after the block, at twice the size."""
        y = self.first(_doubled(relu(self.first_norm(x, labels))))
        y = self.second(relu(self.second_norm(y, labels)))
        return y + _doubled(self.shortcut(x))  # a 1×1 convolution is cheaper before, and the same


class ClassNorm(nn.Module):
    """Batch norm with a scale and a shift for each class."""

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, _BATCH_NORM_EPS, affine=False)
        self.scale = nn.Embedding(classes, channels)
        self.shift = nn.Embedding(classes, channels)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        """Return the features, normalised and then scaled and shifted by class."""
        scale, shift = (e(labels)[:, :, None, None] for e in (self.scale, self.shift))
        return self.norm(x) * (1 + scale) + shift


class Discriminator(nn.Module):
    """A discriminator of images and classes, all of whose weights are spectrally normalised.

    Of the features h of an image, it is w·h + b + e·h with e the embedding of the class.

    Args:
        width: Half of the channels of every block.
        channels: Of the images.
        classes: How many there are.
        shortcut: What passes by a block's convolutions: its input as it is, or after the first
            ReLU, as where that is applied in place.

    Example:
        >>> discriminator = Discriminator(width=64, channels=3, classes=10)
        >>> sum(p.numel() for p in discriminator.parameters())
        1055105
        >>> discriminator(torch.zeros(2, 3, 32, 32), torch.tensor([0, 9])).shape
        torch.Size([2])
    """

    def __init__(
        self, width: int, channels: int, classes: int, shortcut: Shortcut = "plain"
    ) -> None:
        super().__init__()
        inner = 2 * width
        self.blocks = nn.Sequential(
            HalvingFirst(channels, inner),
            Block(inner, shortcut, halves=True),
            Block(inner, shortcut, halves=False),
            Block(inner, shortcut, halves=False),
        )
        self.head = nn.Linear(inner, 1)
        self.embedding = nn.Embedding(classes, inner)
        self.apply(_orthogonal)
        for module in list(self.modules()):
            if isinstance(module, nn.Conv2d | nn.Linear | nn.Embedding):
                spectral_norm(module, eps=_SPECTRAL_NORM_EPS)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Return one number for each image and its class."""
        features = relu(self.blocks(images)).sum((2, 3))
        return self.head(features).squeeze(1) + (self.embedding(labels) * features).sum(1)


class HalvingFirst(nn.Module):
    """A residual block at half the size, which takes images without a ReLU."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, out, 3, padding=1)
        self.second = nn.Conv2d(out, out, 3, padding=1)
        self.shortcut = nn.Conv2d(channels, out, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of images, at half the size."""
        y = self.second(relu(self.first(x)))
        return avg_pool2d(y, 2) + self.shortcut(avg_pool2d(x, 2))


class Block(nn.Module):
    """A residual block of two ReLUs and 3×3 convolutions, at half the size or the same."""

    def __init__(self, channels: int, shortcut: Shortcut, halves: bool) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.shortcut = nn.Conv2d(channels, channels, 1) if halves else nn.Identity()
        self.pool = nn.AvgPool2d(2) if halves else nn.Identity()
        self.rectified = shortcut == "rectified"

    def forward(self, x: Tensor) -> Tensor:
        """Return the features after the block."""
        positive = relu(x)
        y = self.second(relu(self.first(positive)))
        return self.pool(y) + self.shortcut(self.pool(positive if self.rectified else x))


def _doubled(images: Tensor) -> Tensor:
    return interpolate(images, scale_factor=2.0)


def _orthogonal(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d | nn.Linear | nn.Embedding):
        nn.init.orthogonal_(module.weight)
    if isinstance(module, nn.Conv2d | nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
