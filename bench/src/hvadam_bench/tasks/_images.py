"""What families of tasks share that read images, or make some."""

from __future__ import annotations

import io
import math
from typing import Any

import torch
from PIL import Image
from torch import Generator, Tensor

from hvadam_bench.data import DataError
from hvadam_bench.data.images import ImageData, Images
from hvadam_bench.tasks._spec import Split


def first(name: str, data: ImageData, train: int | None, test: int | None) -> ImageData:
    """Return the first images of both parts, all of them where no number is given.

    Raises:
        DataError: there are not as many.
    """
    if data.missing and (train is None or len(data.train) < train):
        wanted = f"the first {train:,}" if train else "all"
        raise DataError(
            f"{name}: training takes {wanted} of the images, and "
            f"{', '.join(data.missing)} are missing; `hvadam data get {name}` downloads them."
        )
    cut = (
        Images(part.pixels[:count], part.labels[:count])
        for part, count in ((data.train, train), (data.test, test))
    )
    return ImageData(*cut, classes=data.classes)


def held_out(train: Any, test: Any, counts: tuple[int, int], inherited: bool) -> dict[Split, Any]:
    """Return the images of each split and their numbers, given so many to train on and to test on.

    Every tenth training image is for validation. None is if that is inherited: then validation is
    on the test images.
    """
    every = torch.arange(counts[0])
    held = every % 10 == 9
    tested = test, torch.arange(counts[1])
    if inherited:
        return {"train": (train, every), "valid": tested, "test": tested}
    return {"train": (train, every[~held]), "valid": (train, every[held]), "test": tested}


def random_flip(images: Tensor, generator: Generator) -> Tensor:
    """Mirror half of the images, left to right."""
    mirrored = torch.rand(len(images), 1, 1, 1, generator=generator) < 0.5
    return torch.where(mirrored, images.flip(3), images)


def as_bytes(images: Tensor, stretch: bool) -> Tensor:
    """Return images in [-1, 1] as bytes; stretched, each from its own darkest to brightest.

    Example:
        >>> as_bytes(torch.tensor([[[[-1.0, 0.0]]]]), stretch=False).tolist()
        [[[[0, 128]]]]
        >>> as_bytes(torch.tensor([[[[-1.0, 0.0]]]]), stretch=True).tolist()
        [[[[0, 255]]]]
    """
    if stretch:
        low, high = images.amin((1, 2, 3), keepdim=True), images.amax((1, 2, 3), keepdim=True)
        images = 2 * (images - low) / (high - low).clamp(min=1e-5) - 1
    return ((images + 1) * 127.5).round().clamp(0, 255).byte()


def png(images: Tensor) -> bytes:
    """Return a square of images as a PNG file."""
    side = math.isqrt(len(images))
    channels, height, width = images.shape[1:]
    tiles = images[: side * side].reshape(side, side, channels, height, width)
    sheet = tiles.permute(0, 3, 1, 4, 2).reshape(side * height, side * width, channels)
    buffer = io.BytesIO()
    Image.fromarray(sheet.squeeze(2).numpy()).save(buffer, format="PNG")
    return buffer.getvalue()
