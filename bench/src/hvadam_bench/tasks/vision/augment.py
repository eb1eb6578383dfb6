"""Random changes to whole batches of images, vectorised, from an explicit generator.

Images are (n, channels, height, width). Crops take any dtype; the rest takes levels from 0 to 255
as floats and returns such. What a change uncovers is black, as in the published pipelines,
which change images before they normalise them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Generator, Tensor
from torch.nn.functional import affine_grid, conv2d, grid_sample, pad


def random_crop(images: Tensor, margin: int, generator: Generator) -> Tensor:
    """Shift each image by up to `margin` pixels either way.

    Example:
        >>> image = torch.arange(9).view(1, 1, 3, 3)
        >>> random_crop(image, 1, Generator().manual_seed(0)).shape
        torch.Size([1, 1, 3, 3])
    """
    n, _, height, width = images.shape
    windows = pad(images, [margin] * 4).unfold(2, height, 1).unfold(3, width, 1)
    top, left = torch.randint(2 * margin + 1, (2, n), generator=generator)
    return windows[torch.arange(n), :, top, left]


def random_rotation(images: Tensor, degrees: float, generator: Generator) -> Tensor:
    """Turn each image around its centre by up to `degrees` either way."""
    turn = 2 * torch.rand(len(images), generator=generator) - 1
    return _rotated(images, turn * math.radians(degrees))


def auto_augment(images: Tensor, generator: Generator) -> Tensor:
    """Apply to each image one of the 25 pairs of changes that AutoAugment found for ImageNet.

    References:
        Cubuk et al., arXiv:1805.09501, Table 9 (this policy), Table 6 (ranges).
    """
    pairs = torch.randint(len(_POLICY), (len(images),), generator=generator)
    for place in range(2):
        rows = torch.tensor([pair[place][1:] for pair in _POLICY])[pairs]
        chance, level = rows[:, 0], rows[:, 1] / 9
        taken = torch.rand(len(images), generator=generator) < chance
        names = [_POLICY[pair][place][0] for pair in pairs.tolist()]
        kinds = torch.tensor([_KINDS.index(name) for name in names])
        kinds[~taken] = _KINDS.index("identity")
        images = _apply(images, kinds, level, generator)
    return images


def rand_augment(images: Tensor, generator: Generator) -> Tensor:
    """Apply two changes drawn evenly to each image, at magnitude 9 of 30.

    References:
        Cubuk et al., arXiv:1909.13719.
    """
    drawn = [i for i, name in enumerate(_KINDS) if name != "invert"]
    for _ in range(2):
        choice = torch.randint(len(drawn), (len(images),), generator=generator)
        level = torch.full((len(images),), 9 / 30)
        images = _apply(images, torch.tensor(drawn)[choice], level, generator)
    return images


def _apply(images: Tensor, kinds: Tensor, level: Tensor, generator: Generator) -> Tensor:
    """Apply to each image its kind of change, in either direction where it has two."""
    sign = 1 - 2 * torch.randint(2, (len(images),), generator=generator)
    changed = images.clone()
    for kind in kinds.unique().tolist():
        chosen = kinds == kind
        change = _CHANGES[_KINDS[kind]]
        changed[chosen] = change(images[chosen], level[chosen], sign[chosen])
    return changed


def _affine(images: Tensor, *rows: list[Tensor | float]) -> Tensor:
    """Take each output pixel from the nearest input pixel at matrix · (x, y, 1), in [-1, 1]²."""
    like = torch.zeros(len(images))
    matrix = torch.stack([torch.stack([like + entry for entry in row], 1) for row in rows], 1)
    grid = affine_grid(matrix, list(images.shape), align_corners=False)
    return grid_sample(images, grid, mode="nearest", align_corners=False)


def _rotated(images: Tensor, radians: Tensor) -> Tensor:
    cos, sin = radians.cos(), radians.sin()
    return _affine(images, [cos, -sin, 0.0], [sin, cos, 0.0])


def _sheared(images: Tensor, level: Tensor, sign: Tensor, across: bool) -> Tensor:
    shear = 0.3 * level * sign  # the top row stays, or the left column
    if across:
        return _affine(images, [1.0, shear, shear], [0.0, 1.0, 0.0])
    return _affine(images, [1.0, 0.0, 0.0], [shear, 1.0, shear])


def _translated(images: Tensor, level: Tensor, sign: Tensor, across: bool) -> Tensor:
    way = 2 * 150 / 331 * level * sign
    return _affine(images, [1.0, 0.0, way * across], [0.0, 1.0, way * (not across)])


def _blended(images: Tensor, other: Tensor | float, level: Tensor, sign: Tensor) -> Tensor:
    """Move images away from `other` or towards it, by up to nine tenths."""
    share = (1 + 0.9 * level * sign).view(-1, 1, 1, 1)
    return (other + share * (images - other)).clamp(0, 255)


def _grey(images: Tensor) -> Tensor:
    """Return the luma of ITU-R 601, which libraries take for grey; grey images are their own."""
    if images.shape[1] == 1:
        return images
    weights = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
    return (images * weights).sum(1, keepdim=True)


def _contrast(images: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    return _blended(images, _grey(images).mean((1, 2, 3), keepdim=True), level, sign)


def _sharpness(images: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    kernel = torch.ones(images.shape[1], 1, 3, 3)
    kernel[:, :, 1, 1] = 5
    smooth = images.clone()  # the border stays as it is
    smooth[:, :, 1:-1, 1:-1] = conv2d(images, kernel / 13, groups=images.shape[1])
    return _blended(images, smooth, level, sign)


def _posterize(images: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    unit = (2 ** (4 * level).round()).view(-1, 1, 1, 1)  # from 8 bits down to 4
    return (images / unit).floor() * unit


def _solarize(images: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    threshold = (255 * (1 - level)).view(-1, 1, 1, 1)
    return torch.where(images >= threshold, 255 - images, images)


def _auto_contrast(images: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    stretched = (images - low) * 255 / (high - low).clamp(min=1)
    return torch.where(high > low, stretched, images)


def _equalize(images: Tensor, level: Tensor, sign: Tensor) -> Tensor:
    """Make levels about equally frequent, channel by channel, in the arithmetic of Pillow."""
    pixels = images.round().long().flatten(2)
    counts = torch.zeros(*pixels.shape[:2], 256, dtype=torch.long)
    counts.scatter_add_(2, pixels, torch.ones_like(pixels))
    unit = (pixels.shape[2] - counts.gather(2, pixels.amax(2, keepdim=True))) // 255
    below = counts.cumsum(2) - counts
    levels = (unit // 2 + below) // unit.clamp(min=1)
    table = torch.where(unit > 0, levels.clamp(max=255), torch.arange(256))
    return table.gather(2, pixels).view_as(images).to(images.dtype)


_CHANGES: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "identity": lambda images, level, sign: images,
    "shear_x": partial(_sheared, across=True),
    "shear_y": partial(_sheared, across=False),
    "translate_x": partial(_translated, across=True),
    "translate_y": partial(_translated, across=False),
    "rotate": lambda images, level, sign: _rotated(images, math.radians(30) * level * sign),
    "brightness": lambda images, level, sign: _blended(images, 0.0, level, sign),
    "color": lambda images, level, sign: _blended(images, _grey(images), level, sign),
    "contrast": _contrast,
    "sharpness": _sharpness,
    "posterize": _posterize,
    "solarize": _solarize,
    "auto_contrast": _auto_contrast,
    "equalize": _equalize,
    "invert": lambda images, level, sign: 255 - images,
}
_KINDS = list(_CHANGES)
# Pairs of (change, probability, magnitude of 9).
_POLICY: list[tuple[tuple[str, float, int], tuple[str, float, int]]] = [
    (("posterize", 0.4, 8), ("rotate", 0.6, 9)),
    (("solarize", 0.6, 5), ("auto_contrast", 0.6, 0)),
    (("equalize", 0.8, 0), ("equalize", 0.6, 0)),
    (("posterize", 0.6, 7), ("posterize", 0.6, 6)),
    (("equalize", 0.4, 0), ("solarize", 0.2, 4)),
    (("equalize", 0.4, 0), ("rotate", 0.8, 8)),
    (("solarize", 0.6, 3), ("equalize", 0.6, 0)),
    (("posterize", 0.8, 5), ("equalize", 1.0, 0)),
    (("rotate", 0.2, 3), ("solarize", 0.6, 8)),
    (("equalize", 0.6, 0), ("posterize", 0.4, 6)),
    (("rotate", 0.8, 8), ("color", 0.4, 0)),
    (("rotate", 0.4, 9), ("equalize", 0.6, 0)),
    (("equalize", 0.0, 0), ("equalize", 0.8, 0)),
    (("invert", 0.6, 0), ("equalize", 1.0, 0)),
    (("color", 0.6, 4), ("contrast", 1.0, 8)),
    (("rotate", 0.8, 8), ("color", 1.0, 2)),
    (("color", 0.8, 8), ("solarize", 0.8, 7)),
    (("sharpness", 0.4, 7), ("invert", 0.6, 0)),
    (("shear_x", 0.6, 5), ("equalize", 1.0, 0)),
    (("color", 0.4, 0), ("equalize", 0.6, 0)),
    (("equalize", 0.4, 0), ("solarize", 0.2, 4)),
    (("solarize", 0.6, 5), ("auto_contrast", 0.6, 0)),
    (("invert", 0.6, 0), ("equalize", 1.0, 0)),
    (("color", 0.6, 4), ("contrast", 1.0, 8)),
    (("equalize", 0.8, 0), ("equalize", 0.6, 0)),
]
