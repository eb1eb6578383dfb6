"""The U-Net of improved denoising diffusion models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

_LONGEST = 10_000  # about how far apart two times may be before the slowest wave returns, over 2π


class UNet(nn.Module):
    """A U-Net that tells the noise in images at given times, and how sure it is of the step back.

    To each noisy image it gives two: the noise in it, and where between its bounds the logarithm
    of the variance lies, -1 for the lower and 1 for the upper one.

    Residual blocks go down from the images' size by halves and up again, and what each gave on the
    way down is handed to the one across. Times scale and shift the second normalisation of every
    block. Blocks start as the identity, and the network gives zeros.

    Args:
        channels: Channels of the images.
        size: Height and width of the images.
        width: Channels of a block at full size, a multiple of four.
        multipliers: What to multiply the width by at full size, half of it, and so on.
        blocks: Residual blocks at each size on the way down; one more on the way up.
        attention: Sizes at which each block is followed by attention over all places; there is
            one in the middle besides.
        heads: Attention heads.
        dropout: The share dropped before the last convolution of a block.

    References:
        Nichol and Dhariwal, arXiv:2102.09672, appendix A. Ho et al., arXiv:2006.11239.
    """

    def __init__(
        self,
        channels: int,
        size: int,
        width: int,
        multipliers: Sequence[int],
        blocks: int,
        attention: Sequence[int],
        heads: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if width % 4:
            raise ValueError(f"UNet: width must be a multiple of 4, got {width}.")
        if size % 2 ** (len(multipliers) - 1):
            raise ValueError(
                f"UNet: size must be divisible by {2 ** (len(multipliers) - 1)}, as it is halved "
                f"between each two of {len(multipliers)} multipliers; got {size}."
            )

        def stage(before: int, after: int, at: int) -> _Stage:
            return _Stage(before, after, 4 * width, dropout, heads if at in attention else 0)

        widths = [width * m for m in multipliers]
        sizes = [size >> i for i in range(len(widths))]
        self.width = width
        self.time = nn.Sequential(
            nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, 4 * width)
        )
        self.stem = nn.Conv2d(channels, width, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        now, handed = width, [width]  # channels, and those of what will be handed across
        for i, (after, at) in enumerate(zip(widths, sizes, strict=True)):
            if i > 0:
                handed.append(now)
            level = [stage(now if j == 0 else after, after, at) for j in range(blocks)]
            handed += [after] * blocks
            self.down.append(nn.ModuleList(level))
            now = after
        self.shrink = nn.ModuleList(nn.Conv2d(w, w, 3, stride=2, padding=1) for w in widths[:-1])
        self.middle = nn.ModuleList(
            [_Stage(now, now, 4 * width, dropout, heads), _Stage(now, now, 4 * width, dropout, 0)]
        )
        for after, at in zip(widths[::-1], sizes[::-1], strict=True):
            level = []
            for _ in range(blocks + 1):
                level.append(stage(now + handed.pop(), after, at))
                now = after
            self.up.append(nn.ModuleList(level))
        self.grow = nn.ModuleList(nn.Conv2d(w, w, 3, padding=1) for w in widths[:0:-1])
        last = nn.Conv2d(width * multipliers[0], 2 * channels, 3, padding=1)
        self.head = nn.Sequential(_norm(width * multipliers[0]), nn.SiLU(), _zero(last))

    def forward(self, images: Tensor, times: Tensor) -> Tensor:
        """Return the noise in images at given times, and where their variances lie."""
        time = self.time(waves(times, self.width))
        x = self.stem(images)
        handed = [x]
        for shrink, level in _with(self.shrink, self.down):
            if shrink is not None:
                x = shrink(x)
                handed.append(x)
            for stage in level:
                x = stage(x, time)
                handed.append(x)
        for stage in self.middle:
            x = stage(x, time)
        for grow, level in _with(self.grow, self.up):
            if grow is not None:
                x = grow(_doubled(x))
            for stage in level:
                x = stage(torch.cat([x, handed.pop()], 1), time)
        return self.head(x)


def waves(times: Tensor, count: int) -> Tensor:
    """Return cosines and sines of times, half of `count` each, from fast to slow."""
    steps = torch.arange(count // 2, device=times.device) / (count // 2)
    angles = times.float()[:, None] * torch.exp(-math.log(_LONGEST) * steps)
    return torch.cat([angles.cos(), angles.sin()], 1)


class _Stage(nn.Module):
    """A residual block that knows the time, and attention if there are heads."""

    def __init__(self, before: int, after: int, time: int, dropout: float, heads: int) -> None:
        super().__init__()
        self.first = nn.Sequential(_norm(before), nn.SiLU(), nn.Conv2d(before, after, 3, padding=1))
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(time, 2 * after))
        self.norm = _norm(after)
        last = nn.Conv2d(after, after, 3, padding=1)
        self.second = nn.Sequential(nn.SiLU(), nn.Dropout(dropout), _zero(last))
        self.skip = nn.Identity() if before == after else nn.Conv2d(before, after, 1)
        self.attention = _Attention(after, heads) if heads else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        scale, shift = self.time(time)[:, :, None, None].chunk(2, 1)
        found = self.norm(self.first(x)) * (1 + scale) + shift
        return self.attention(self.skip(x) + self.second(found))


class _Attention(nn.Module):
    """Attention of each place of an image to all others."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"UNet: heads must divide {width} channels, got {heads}.")
        self.heads = heads
        self.norm = _norm(width)
        self.asked = nn.Conv2d(width, 3 * width, 1)
        self.answer = _zero(nn.Conv2d(width, width, 1))

    def forward(self, x: Tensor) -> Tensor:
        parts = self.asked(self.norm(x)).unflatten(1, (3, self.heads, -1)).flatten(4)
        query, key, value = parts.transpose(3, 4).unbind(1)
        found = scaled_dot_product_attention(query, key, value)  # (batch, heads, places, features)
        return x + self.answer(found.transpose(2, 3).reshape(x.shape))


def _norm(width: int) -> nn.GroupNorm:
    # 32 groups, as published; in narrow networks fewer, so that a group has at least four channels.
    return nn.GroupNorm(min(32, width // 4), width)


def _zero(layer: nn.Conv2d) -> nn.Conv2d:
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
    return layer


def _doubled(x: Tensor) -> Tensor:
    """Return images twice as high and wide; interpolation is not reproducible on GPUs."""
    batch, channels, height, width = x.shape
    tiles = x[:, :, :, None, :, None].expand(-1, -1, -1, 2, -1, 2)
    return tiles.reshape(batch, channels, 2 * height, 2 * width)


def _with(resizes: nn.ModuleList, levels: nn.ModuleList) -> Iterator[tuple[Any, Any]]:
    """Yield the levels, each with what comes before it; before the first comes nothing."""
    yield from zip([None, *resizes], levels, strict=True)
