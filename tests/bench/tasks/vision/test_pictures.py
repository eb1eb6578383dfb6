"""Picture files of any size: decoded, cut to boxes and trained on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from made_problems import smoke_images as problem
from PIL import Image

from hvadam_bench.data import imagenet
from hvadam_bench.tasks.vision import pictures


def picture_folders(root: Path) -> None:
    generator = np.random.default_rng(0)
    for part, count in (("train", 20), ("val", 3)):
        for wnid in ("n01440764", "n01443537"):
            folder = root / "imagenet" / part / wnid
            folder.mkdir(parents=True)
            for i in range(count):
                shape = (int(generator.integers(40, 80)), int(generator.integers(40, 80)), 3)
                pixels = generator.integers(0, 256, shape, dtype=np.uint8)
                Image.fromarray(pixels).save(folder / f"{wnid}_{i}.JPEG")


@pytest.mark.parametrize("protocol", ["standard", "inherited"])
def test_imagenet_folders_train(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture_folders(tmp_path)
    monkeypatch.setattr("hvadam_bench.data.load", lambda name: imagenet.load(tmp_path, classes=2))
    one, again = (
        problem("imagenet_resnet50", protocol, data="imagenet", batch_size=8) for _ in range(2)
    )
    assert one.steps == (3 * 5 if protocol == "standard" else 3 * 3 * 5)
    batch = one.batch(4)
    assert batch.images.shape == (4 if protocol == "standard" else 8, 3, 32, 32)
    assert torch.equal(again.batch(4).images, batch.images)
    next(one.updates(batch)).loss.backward()
    assert set(one.evaluate("valid")) == {"accuracy", "loss"}


def test_random_boxes_lie_inside_and_keep_their_share() -> None:
    generator = np.random.default_rng(0)
    for _ in range(300):
        width, height = generator.integers(20, 400, 2).tolist()
        box = pictures.random_box(width, height, generator.random((10, 4)))
        left, top, right, bottom = box
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        if max(width, height) < 2 * min(width, height):
            assert (right - left) * (bottom - top) > 0.07 * width * height
            assert 0.6 < (right - left) / (bottom - top) < 1.6
    assert pictures.central_box(100, 50, 0.8) == (30.0, 5.0, 70.0, 45.0)
