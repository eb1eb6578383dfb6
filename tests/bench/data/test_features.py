"""Features of images: the small networks that are kept, and Inception's."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
import torch

from hvadam_bench.data import features
from hvadam_bench.data.frechet import Moments, distance


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
