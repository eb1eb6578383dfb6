"""Pictures that networks learn from their pixels."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from hvadam_bench.tasks.fits.pictures import PictureProblem, Siren, decibels, picture, places

SETTINGS = {
    **{"size": 12, "arrived": 30.0, "steps": 10, "warmup": 0.0, "dtype": "float32", "batch": 9}
}


class Known(nn.Module):
    """A network that knows the picture, but for an offset."""

    def __init__(self, offset: float) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.tensor(offset))

    def forward(self, at: Tensor) -> Tensor:
        column, row = ((at + 1) * 6 - 0.5).round().long().T
        return picture(12)[row, column] + self.offset


def problem(offset: float) -> PictureProblem:
    return PictureProblem(lambda: Known(offset), SETTINGS, seed=0)


def test_places_are_middles_of_pixels_row_by_row() -> None:
    assert places(2).tolist() == [[-0.5, -0.5], [0.5, -0.5], [-0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize("offset", [0.02, 0.2])
def test_the_measures_are_those_of_an_error_that_is_known(offset: float) -> None:
    found = problem(offset).evaluate("valid")
    assert found["loss"] == pytest.approx(offset**2, rel=1e-4)
    assert found["psnr"] == pytest.approx(20 * math.log10(2 / offset), rel=1e-4)
    assert found["arrived"] == (offset < 0.06)


def test_a_batch_is_the_mean_over_its_pixels() -> None:
    made = problem(0.1)
    batch = made.batch(3)
    assert batch is not None
    assert len(batch) == 9
    with torch.no_grad():
        made.model.offset.zero_()  # type: ignore[union-attr, operator]
        [update] = made.updates(batch)
    assert update.loss.item() == 0
    constant = PictureProblem(lambda: Constant(), SETTINGS, seed=0)
    [update] = constant.updates(batch)
    levels = picture(12).flatten()[batch]
    assert update.loss.item() == pytest.approx(levels.square().mean().item())


class Constant(nn.Module):
    """A network that says 0 everywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.level = nn.Parameter(torch.zeros(1))

    def forward(self, at: Tensor) -> Tensor:
        return self.level.expand(len(at))


def test_the_artifact_shows_the_picture() -> None:
    [(name, content)] = problem(0.0).artifacts().items()
    shown = np.asarray(Image.open(io.BytesIO(content)))
    assert name == "samples.png"
    assert shown.shape == (12, 12)
    assert np.abs(shown - (picture(12).numpy() + 1) * 127.5).max() <= 0.51


def test_the_picture_has_edges_at_every_size() -> None:
    for size in (16, 64, 256):
        levels = picture(size)
        assert levels.diff(dim=0).abs().max() > 1
        assert levels.diff(dim=1).abs().max() > 1
    assert decibels(0.0) == pytest.approx(306, abs=1)


def test_it_computes_sines_of_sines() -> None:
    torch.manual_seed(0)
    network: Any = Siren(2, 5, 2, 30.0).double()
    at = torch.rand(7, 2, dtype=torch.float64)
    first, second = network.hidden
    h = torch.sin(30 * (at @ first.weight.T + first.bias))
    h = torch.sin(30 * (h @ second.weight.T + second.bias))
    expected = (h @ network.last.weight.T + network.last.bias)[:, 0]
    torch.testing.assert_close(network(at), expected)


def test_weights_start_as_published() -> None:
    torch.manual_seed(0)
    network: Any = Siren(2, 64, 3, 30.0)
    bounds = [1 / 2, *[math.sqrt(6 / 64) / 30] * 3]
    for layer, bound in zip([*network.hidden, network.last], bounds, strict=True):
        largest = layer.weight.abs().max().item()
        assert 0.8 * bound < largest <= bound


def test_activations_are_spread_alike_in_every_layer() -> None:
    torch.manual_seed(0)
    network, h = Siren(2, 256, 3, 30.0), 2 * torch.rand(1000, 2) - 1
    for layer in network.hidden:
        h = torch.sin(30 * layer(h))
        assert 0.6 < h.std().item() < 0.8  # an arcsine's, √½
