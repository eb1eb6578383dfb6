"""Pictures that classifiers learn from: in memory, drawn by a formula, or decoded from files."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
import torch
from PIL import Image
from torch import Generator, Tensor
from torch.nn.functional import interpolate

from hvadam.info import usable_cores
from hvadam_bench.data import load
from hvadam_bench.data.imagenet import Folder, decode
from hvadam_bench.data.images import ImageData, Images
from hvadam_bench.tasks._images import first
from hvadam_bench.tasks._problem import seeded_generator
from hvadam_bench.tasks._spec import Settings
from hvadam_bench.tasks.vision.augment import random_crop

Box = tuple[float, float, float, float]  # left, top, right, bottom
_TRIES = 10


class Pictures(Protocol):
    """Images by number, as bytes of one size (n, channels, height, width)."""

    labels: Tensor

    def cropped(self, chosen: Tensor, generator: Generator) -> Tensor:
        """Return pictures for a training batch, cut at a random place."""
        ...

    def centred(self, chosen: Tensor) -> Tensor:
        """Return pictures to evaluate on."""
        ...


class InMemory:
    """Small images, enlarged to `size` when asked for, and shifted by up to `margin` pixels."""

    def __init__(self, images: Images, size: int, margin: int) -> None:
        self.pixels = torch.tensor(images.pixels)
        self.labels = torch.tensor(images.labels)
        self.size = size
        self.margin = margin

    def cropped(self, chosen: Tensor, generator: Generator) -> Tensor:
        """Return images of these numbers, each shifted at random."""
        return random_crop(self.centred(chosen), self.margin, generator)

    def centred(self, chosen: Tensor) -> Tensor:
        """Return images of these numbers as they are."""
        pixels = self.pixels[chosen]
        if pixels.shape[2] == self.size:
            return pixels
        enlarged = interpolate(pixels.float(), (self.size, self.size), mode="bilinear")
        return enlarged.round().byte()


class Parts(NamedTuple):
    """The training pictures, the test pictures, and how many classes they show."""

    train: Pictures
    test: Pictures
    classes: int


def small_images(
    settings: Settings, size: int = 32, margin: int = 4, **synthetic_shape: int
) -> Parts:
    """Return the images that "data" names, or "synthetic" ones, as many as the settings say.

    Args:
        settings: The task's.
        size: Height and width that the network takes.
        margin: Of random crops.
        synthetic_shape: Of synthetic images: classes, channels, native (height and width).
    """
    name, train, test = settings["data"], settings["train_images"], settings["test_images"]
    if name == "synthetic":
        images = synthetic(train, test, **synthetic_shape)
    else:
        images = first(name, load(name), train, test)
    return Parts(
        InMemory(images.train, size, margin), InMemory(images.test, size, margin), images.classes
    )


@lru_cache(maxsize=2)
def synthetic(
    train: int, test: int, classes: int = 10, channels: int = 3, native: int = 32
) -> ImageData:
    """Make noisy copies of a smooth pattern for each of ten classes: they need no files."""
    generator = seeded_generator("synthetic", train, test, classes, channels, native)
    coarse = torch.randint(2, (10, channels, 4, 4), generator=generator).float()
    patterns = interpolate(coarse, (native, native), mode="bilinear")
    parts: list[Images] = []
    for count in (train, test):
        # Shuffled: in a regular order, every tenth image would be of one class.
        labels = (torch.arange(count) % 10)[torch.randperm(count, generator=generator)]
        noise = torch.randn(count, channels, native, native, generator=generator)
        pixels = (255 * (patterns[labels] + 0.1 * noise)).clamp(0, 255).byte()
        parts.append(Images(pixels.numpy(), labels.numpy()))
    return ImageData(*parts, classes=classes)


class Decoded:
    """A folder's pictures, cut to squares of `size`, decoded when a batch needs them.

    In training a part of 8% to 100% of the area, between 3:4 and 4:3, is enlarged to the square;
    to evaluate, the centre of the picture whose shorter side is `size` + 32.
    """

    def __init__(self, folder: Folder, size: int) -> None:
        self.paths = [path for path, _ in folder.pictures]
        self.labels = torch.tensor([label for _, label in folder.pictures])
        self.size = size
        # Pillow decodes and resizes outside the interpreter's lock.
        self.threads = ThreadPoolExecutor(usable_cores())

    def cropped(self, chosen: Tensor, generator: Generator) -> Tensor:
        """Return pictures of these numbers, each cut out by a random box."""
        draws = torch.rand(len(chosen), _TRIES, 4, generator=generator).numpy()
        return self._gather(chosen, [lambda w, h, d=d: random_box(w, h, d) for d in draws])

    def centred(self, chosen: Tensor) -> Tensor:
        """Return pictures of these numbers, each cut out in the middle."""
        share = self.size / (self.size + 32)
        return self._gather(chosen, [lambda w, h: central_box(w, h, share)] * len(chosen))

    def _gather(self, chosen: Tensor, boxes: list[Callable[[int, int], Box]]) -> Tensor:
        def cut(index: int, box: Callable[[int, int], Box]) -> np.ndarray:
            picture = Image.fromarray(decode(self.paths[index]))
            square = picture.resize(
                (self.size, self.size),
                Image.Resampling.BILINEAR,
                box(picture.width, picture.height),
            )
            return np.asarray(square).transpose(2, 0, 1)

        return torch.from_numpy(np.stack(list(self.threads.map(cut, chosen.tolist(), boxes))))


def random_box(width: int, height: int, draws: np.ndarray) -> Box:
    """Return the first box that fits, of as many as there are rows of four numbers in [0, 1).

    Example:
        >>> random_box(100, 100, np.array([[1.0, 0.5, 0.3, 0.3]]))  # all of the area, square
        (0.0, 0.0, 100.0, 100.0)
    """
    for area, shape, x, y in draws:
        pixels = (0.08 + 0.92 * area) * width * height
        ratio = (3 / 4) ** (1 - 2 * shape)  # 3:4 to 4:3, evenly in the logarithm
        w, h = round((pixels * ratio) ** 0.5), round((pixels / ratio) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            left, top = float(int(x * (width - w + 1))), float(int(y * (height - h + 1)))
            return left, top, left + w, top + h
    return central_box(width, height, 1.0)


def central_box(width: int, height: int, share: float) -> Box:
    """Return the square in the middle whose side is a share of the shorter one."""
    side = share * min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side
