"""The tensors that steps are timed on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Shape:
    """The parameters of a model, as the sizes of its tensors."""

    name: str
    title: str
    sizes: tuple[tuple[int, ...], ...]

    @property
    def parameters(self) -> int:
        """Return the count of numbers in all tensors."""
        return sum(math.prod(size) for size in self.sizes)


def resnet50() -> list[tuple[int, ...]]:
    """Return ResNet-50 for 1,000 classes: 161 tensors, 25,557,032 parameters."""

    def convolution(out: int, into: int, kernel: int) -> list[tuple[int, ...]]:
        """Return weights without bias, then scale and shift of the normalization that follows."""
        return [(out, into, kernel, kernel), (out,), (out,)]

    sizes = convolution(64, 3, 7)
    into = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            sizes += convolution(width, into, 1)
            sizes += convolution(width, width, 3)
            sizes += convolution(4 * width, width, 1)
            if block == 0:  # the shortcut has to change its width, too
                sizes += convolution(4 * width, into, 1)
            into = 4 * width
    return [*sizes, (1000, into), (1000,)]


def lstm() -> list[tuple[int, ...]]:
    """Return the small word-level language model for the Penn Treebank: 4,653,200 parameters.

    An embedding, two LSTM layers of 200 as ``torch.nn.LSTM`` keeps them, and a decoder of its own.
    """
    layer = [(800, 200), (800, 200), (800,), (800,)]
    return [(10_000, 200), *layer * 2, (10_000, 200), (10_000,)]


def equal_parts(parameters: int, tensors: int) -> list[tuple[int, ...]]:
    """Return vectors of the same size, or of two sizes that differ by one."""
    ends = [parameters * i // tensors for i in range(tensors + 1)]
    return [(end - start,) for start, end in pairwise(ends)]


SHAPES = {
    name: Shape(name, title, tuple(sizes))
    for name, title, sizes in (
        ("single", "one tensor of 25M", [(25_000_000,)]),
        ("resnet50", "ResNet-50: 161 tensors, 25.6M", resnet50()),
        ("lstm", "LSTM: 11 tensors, 4.65M", lstm()),
        ("small", "2,000 tensors of 64", [(64,)] * 2000),
        # HVAdam's float32 state takes 12 bytes a parameter.
        ("huge", "one tensor of 89.5M: 1 GiB of state", [(2**30 // 12,)]),
    )
}

# How the time grows: with the parameters of one tensor, and with the tensors of one total.
BY_PARAMETERS = tuple(
    Shape(f"{n}M", f"one tensor of {n}M", ((n * 1_000_000,),)) for n in (1, 3, 10, 30, 100)
)
BY_TENSORS = tuple(
    Shape(f"{n}", f"4M in {n:,} tensors", tuple(equal_parts(4_000_000, n)))
    for n in (1, 10, 100, 1000, 10_000)
)
