"""DCGAN's generator and critic, as the paper's WGAN and WGAN-GP use them."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

Norm = Literal["batch", "layer"]
Head = Literal["conv", "sigmoid", "linear"]


class Generator(nn.Module):
    """A generator of images in [-1, 1]: transposed convolutions that double the size.

    Args:
        latent: Entries of a latent vector.
        width: Channels before the last layer; each layer before that has twice as many.
        size: Height and width of the images: 8, 16, 32 or 64.
        channels: Of the images.

    Example:
        >>> import torch
        >>> generator = Generator(latent=100, width=64, size=64, channels=3)
        >>> sum(p.numel() for p in generator.parameters())
        3576704
        >>> generator(torch.zeros(2, 100)).shape
        torch.Size([2, 3, 64, 64])
    """

    def __init__(self, latent: int, width: int, size: int, channels: int) -> None:
        super().__init__()
        widths = _widths(width, size)[::-1]
        layers: list[nn.Module] = [nn.ConvTranspose2d(latent, widths[0], 4, bias=False)]
        for before, after in zip(widths, [*widths[1:], channels], strict=True):
            layers += [nn.BatchNorm2d(before), nn.ReLU()]
            layers += [nn.ConvTranspose2d(before, after, 4, stride=2, padding=1, bias=False)]
        self.layers = nn.Sequential(*layers, nn.Tanh())
        self.apply(_start)

    def forward(self, latents: Tensor) -> Tensor:
        """Return the images of latent vectors."""
        return self.layers(latents[:, :, None, None])


class Critic(nn.Module):
    """A critic that gives each image one number: convolutions that halve the size.

    Args:
        width: Channels after the first layer; each layer after that has twice as many.
        size: Height and width of the images: 8, 16, 32 or 64.
        channels: Of the images.
        norm: After all convolutions but the first: over the batch, or over each image alone, which
            a penalty on each image's gradient needs to mean what it says.
        head: The last layer: a convolution, one with a sigmoid after it, or a linear layer.

    Example:
        >>> import torch
        >>> critic = Critic(width=64, size=64, channels=3)
        >>> sum(p.numel() for p in critic.parameters())
        2765568
        >>> critic(torch.zeros(2, 3, 64, 64)).shape
        torch.Size([2])
    """

    def __init__(
        self, width: int, size: int, channels: int, norm: Norm = "batch", head: Head = "conv"
    ) -> None:
        super().__init__()
        widths = _widths(width, size)
        layers: list[nn.Module] = []
        for i, (before, after) in enumerate(zip([channels, *widths], widths, strict=False)):
            layers.append(nn.Conv2d(before, after, 4, stride=2, padding=1, bias=False))
            if i > 0:
                layers.append(nn.BatchNorm2d(after) if norm == "batch" else nn.GroupNorm(1, after))
            layers.append(nn.LeakyReLU(0.2))
        if head == "linear":
            layers += [nn.Flatten(), nn.Linear(16 * widths[-1], 1)]
        else:
            layers.append(nn.Conv2d(widths[-1], 1, 4, bias=False))
        if head == "sigmoid":
            layers.append(nn.Sigmoid())
        self.layers = nn.Sequential(*layers)
        self.apply(_start)

    def forward(self, images: Tensor) -> Tensor:
        """Return one number for each image."""
        return self.layers(images).flatten()


def _widths(width: int, size: int) -> list[int]:
    """Return the channels at half the size, a quarter of it, and so on down to 4."""
    doublings = size.bit_length() - 3
    if doublings < 1 or 4 * 2**doublings != size:
        raise ValueError(f"DCGAN: size must be a power of two from 8 on, got {size}.")
    return [width * 2**i for i in range(doublings)]


def _start(module: nn.Module) -> None:
    """Set DCGAN's initial weights; a linear layer keeps torch's."""
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d | nn.GroupNorm):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)
