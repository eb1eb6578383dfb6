"""A picture as a function of the place, for networks that learn it from its pixels.

The picture is drawn by a formula: it is the same everywhere, needs no file, and has what makes
photographs hard to fit, at any size: soft shading, sharp edges of several directions, and texture
up to the finest waves that its pixels can hold.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from hvadam_bench.tasks._full_batch import FullBatchProblem
from hvadam_bench.tasks._images import as_bytes, png
from hvadam_bench.tasks._spec import Settings


class PictureProblem(FullBatchProblem):
    """A network from places to grey levels, and the mean squared error of all pixels.

    Args:
        make: () -> the network; called under the run's seed.
        settings: "size" (of the picture's sides) and "arrived" (the peak signal-to-noise ratio, in
            decibels, from which on the picture counts as learnt) are read, and what
            `FullBatchProblem` reads.
        seed: The run's.
    """

    def __init__(self, make: Callable[[], nn.Module], settings: Settings, seed: int) -> None:
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


class Siren(nn.Module):
    """A coordinate network of sines: layers sin(ω(Wx + b)) from a place to a value, and a last map.

    After Sitzmann et al. (arXiv:2006.09661), as whose weights start: uniform up to 1/inputs in the
    first layer and up to √(6/inputs)/ω in the others, so that all activations are spread alike.

    Args:
        inputs: Coordinates of a place.
        width: Of each hidden layer.
        layers: Hidden ones.
        omega: The frequency ω of all layers.
    """

    def __init__(self, inputs: int, width: int, layers: int, omega: float) -> None:
        super().__init__()
        widths = [inputs, *[width] * layers, 1]
        linear = [nn.Linear(inner, outer) for inner, outer in itertools.pairwise(widths)]
        self.hidden, self.last = nn.ModuleList(linear[:-1]), linear[-1]
        self.omega = omega
        with torch.no_grad():
            for i, layer in enumerate(linear):
                fan = layer.weight.shape[1]
                bound = 1 / fan if i == 0 else math.sqrt(6 / fan) / omega
                layer.weight.uniform_(-bound, bound)

    def forward(self, places: Tensor) -> Tensor:
        """Return the values at places, (points, coordinates) -> (points,)."""
        for layer in self.hidden:
            places = torch.sin(self.omega * layer(places))
        return self.last(places).squeeze(1)


def decibels(error: float) -> float:
    """Return the peak signal-to-noise ratio of a mean squared error of levels in [-1, 1]."""
    return 10 * math.log10(4 / max(error, 1e-30))


def places(size: int) -> Tensor:
    """Return the middles of a square's pixels in [-1, 1]², row by row, as (x, y)."""
    line = (2 * torch.arange(size) + 1) / size - 1
    y, x = torch.meshgrid(line, line, indexing="ij")
    return torch.stack([x.flatten(), y.flatten()], 1)


def picture(size: int) -> Tensor:
    """Draw grey levels in [-1, 1]: hills under a sun, a lake with waves, a striped tower."""
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
