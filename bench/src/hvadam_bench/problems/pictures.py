"""Picture files of any size, decoded when a batch needs them, several at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from PIL import Image
from torch import Generator, Tensor

from hvadam.info import usable_cores
from hvadam_bench.data.imagenet import Folder, decode

Box = tuple[float, float, float, float]  # left, top, right, bottom
_TRIES = 10


class Decoded:
    """A folder's pictures, cut to squares of `size`.

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
