"""A picture as a function of the place, for networks that learn it from its pixels.

The picture is drawn by a formula: it is the same everywhere, needs no file, and has what makes
photographs hard to fit, at any size: soft shading, sharp edges of several directions, and texture
up to the finest waves that its pixels can hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from hvadam_bench.problems.generative import as_bytes, png
from hvadam_bench.tasks._full_batch import FullBatchProblem


class PictureProblem(FullBatchProblem):
    """A network from places to grey levels, and the mean squared error of all pixels.

    Args:
        make: () -> the network; called under the run's seed.
        settings: "size" (of the picture's sides) and "arrived" (the peak signal-to-noise ratio, in
            decibels, from which on the picture counts as learnt) are read, and what
            `FullBatchProblem` reads.
        seed: The run's.
    """

    def __init__(
        self, make: Callable[[], nn.Module], settings: Mapping[str, Any], seed: int
    ) -> None:
        self.size = settings["size"]
        self.places = places(self.size)
        levels = picture(self.size).flatten()

        def loss(network: nn.Module, chosen: Tensor | None = None) -> Tensor:
            at, wanted = self.places, levels
            if chosen is not None:
                at, wanted = at[chosen], wanted[chosen]
            return (network(at) - wanted).square().mean()

        def measure(network: nn.Module) -> dict[str, float]:
            ratio = decibels(loss(network).item())
            return {"psnr": ratio, "arrived": float(ratio >= settings["arrived"])}

        super().__init__(make, loss, len(levels), settings, seed, measure)

    @torch.no_grad()
    def artifacts(self) -> dict[str, bytes]:
        levels = self.model(self.places).reshape(1, 1, self.size, self.size)
        return {"samples.png": png(as_bytes(levels, stretch=False))}


def decibels(error: float) -> float:
    """Return the peak signal-to-noise ratio of a mean squared error of levels in [-1, 1].

    Example:
        >>> round(decibels(4e-3), 6)  # a root mean square of a thirtieth of the range
        30.0
    """
    return 10 * math.log10(4 / max(error, 1e-30))


def places(size: int) -> Tensor:
    """Return the middles of a square's pixels in [-1, 1]², row by row, as (x, y)."""
    line = (2 * torch.arange(size) + 1) / size - 1
    y, x = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([x.flatten(), y.flatten()], 1)


def picture(size: int) -> Tensor:
    """Draw grey levels in [-1, 1]: hills under a sun, a lake with waves, a striped tower.

    Example:
        >>> levels = picture(64)
        >>> tuple(levels.shape), levels.abs().max().item() <= 1
        ((64, 64), True)
    """
    x, y = places(size).T.reshape(2, size, size)
    levels = 0.5 - 0.35 * y - 0.15 * x  # the sky, darker towards the ground
    halo = torch.hypot(x - 0.5, y + 0.55)
    levels = levels + 0.3 * torch.exp(-6 * halo)
    levels = torch.where(halo < 0.18, torch.tensor(0.95), levels)
    ridge = 0.12 * torch.sin(4 * x + 1) + 0.06 * torch.sin(11 * x) - 0.02
    rough = 0.16 * torch.sin(23 * x + 9 * y) * torch.sin(17 * y - 8 * x)
    levels = torch.where(y > ridge, -0.45 + rough, levels)
    waves = 0.3 * torch.sin(60 * (y - 0.4) / (0.6 + y) + 3 * torch.sin(3 * x))
    levels = torch.where(y > 0.42, -0.1 + waves - 0.3 * (y - 0.42), levels)
    tower = (abs(x + 0.45) < 0.14) & (y > -0.62) & (y < 0.55)
    stripes = torch.where(torch.sin(25 * (y + 0.4 * x)) > 0, 0.75, -0.85)
    return torch.where(tower, stripes * (1 - 2 * abs(x + 0.45)), levels)
