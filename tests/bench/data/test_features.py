"""The Fréchet distance of known Gaussians; the small networks that are kept, and Inception's."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

from hvadam_bench.data import features
from hvadam_bench.data.features import Moments, distance, noise


def test_distance_of_known_gaussians() -> None:
    # In one basis the covariances commute: Σ (√a - √b)² along its axes, and the means' distance.
    basis, _ = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64))
    a, b = torch.rand(2, 5, dtype=torch.float64) + 0.1
    shift = torch.randn(5, dtype=torch.float64)
    one = Moments(torch.zeros(5, dtype=torch.float64), basis * a @ basis.T)
    other = Moments(shift, basis * b @ basis.T)
    expected = (shift.square().sum() + (a.sqrt() - b.sqrt()).square().sum()).item()
    assert distance(one, other) == pytest.approx(expected, rel=1e-9)
    assert distance(other, one) == pytest.approx(expected, rel=1e-9)
    assert distance(one, one) == pytest.approx(0, abs=1e-9)


@pytest.mark.slow  # to import
def test_agrees_with_torchmetrics() -> None:
    fid = pytest.importorskip("torchmetrics.image.fid")

    class Corner(nn.Module):
        num_features = 12

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return images[:, :, :2, :2].flatten(1).double()

    real, fake = torch.randint(0, 256, (2, 60, 3, 8, 8), dtype=torch.uint8)
    fake = fake // 2
    metric = fid.FrechetInceptionDistance(feature=Corner(), input_img_size=(3, 8, 8))
    metric.set_dtype(torch.float64)
    metric.update(real, real=True)
    metric.update(fake, real=False)
    ours = distance(Moments.of(Corner()(real)), Moments.of(Corner()(fake)))
    assert ours == pytest.approx(metric.compute().item(), rel=1e-5)


def test_noise_is_that_of_fresh_samples() -> None:
    generator = torch.Generator().manual_seed(0)
    reference = Moments(torch.zeros(4, dtype=torch.float64), torch.eye(4, dtype=torch.float64))
    drawn = torch.randn(200, 300, 4, generator=generator) + 1
    fresh = torch.tensor([distance(Moments.of(rows), reference) for rows in drawn]).std().item()
    assert noise(drawn[0], reference, generator, 200) == pytest.approx(fresh, rel=0.25)


def test_the_kept_network_tells_digits_apart_and_noise_from_digits() -> None:
    data = features.images("digits")
    halves = torch.tensor(data.test.pixels).chunk(2)
    noisy = torch.randint(0, 256, halves[0].shape, dtype=torch.uint8)
    one, other, far = (Moments.of(features.small("digits")(p)) for p in (*halves, noisy))
    assert 20 * distance(one, other) < distance(one, far)


def test_unknown_data_is_refused() -> None:
    with pytest.raises(ValueError, match="no small network for 'svhn'; there are digits"):
        features.small("svhn")


class FakeInception:
    """The network of torchmetrics: told its weights' file, 2048 numbers for images in colour."""

    made: ClassVar[list[tuple[Any, ...]]] = []

    def __init__(self, name: str, features: list[str], feature_extractor_weights_path: Any) -> None:
        self.made.append((name, features, feature_extractor_weights_path))

    def __call__(self, pixels: torch.Tensor) -> torch.Tensor:
        assert pixels.dtype == torch.uint8
        assert pixels.shape[1:] == (3, 64, 64)
        assert len(pixels) <= 50
        return pixels.float().mean((1, 2, 3))[:, None].expand(-1, 2048)


@pytest.mark.parametrize("local", [True, False])
def test_inception_takes_the_weights_that_are_there(
    local: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = ModuleType("torchmetrics.image.fid")
    module.NoTrainInceptionV3 = FakeInception
    monkeypatch.setitem(sys.modules, "torchmetrics.image.fid", module)
    monkeypatch.setenv("HVADAM_DATA", str(tmp_path))
    path = tmp_path / features.INCEPTION
    if local:
        path.parent.mkdir()
        path.touch()
    features.inception.cache_clear()
    grey = torch.randint(256, (70, 1, 64, 64), dtype=torch.uint8)
    found = features.inception()(grey)
    features.inception.cache_clear()
    assert FakeInception.made[-1] == ("inception-v3-compat", ["2048"], str(path) if local else None)
    assert torch.equal(found[:, 0], grey.float().mean((1, 2, 3)))


def test_inception_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchmetrics.image.fid", None)
    features.inception.cache_clear()
    with pytest.raises(ImportError, match="pip install torchmetrics torch-fidelity"):
        features.inception()
