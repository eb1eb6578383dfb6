"""Small files in the official layouts of image data sets."""

from __future__ import annotations

import struct

import numpy as np


def pictures(count: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw random 32×32 images and their labels."""
    rng = np.random.default_rng(count)
    pixels = rng.integers(256, size=(count, 3, 32, 32), dtype=np.uint8)
    return pixels, rng.integers(classes, size=count, dtype=np.uint8)


def as_binary(pixels: np.ndarray, labels: np.ndarray, classes: int) -> bytes:
    """Return images in the binary layout of CIFAR."""
    coarse = b"" if classes == 10 else b"\x07"
    rows = zip(labels, pixels, strict=True)
    return b"".join(coarse + bytes([label]) + image.tobytes() for label, image in rows)


def as_idx(values: np.ndarray) -> bytes:
    """Return an array in the idx layout of MNIST."""
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()
