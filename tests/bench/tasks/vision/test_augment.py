"""Random changes to images: crops, flips and policies."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from made_problems import smoke_images as problem
from PIL import Image, ImageEnhance, ImageOps
from torch import Generator, Tensor, nn

from hvadam_bench.data import imagenet
from hvadam_bench.tasks._images import random_flip
from hvadam_bench.tasks.vision import augment, pictures


def test_crops_are_shifted_copies() -> None:
    image = torch.arange(1, 3 * 32 * 32 + 1).view(1, 3, 32, 32)
    crops = augment.random_crop(image.expand(500, -1, -1, -1), 4, Generator().manual_seed(0))
    framed = nn.functional.pad(image, [4] * 4)[0]
    shifts = {}
    for crop in crops:
        places = [
            (top, left)
            for top in range(9)
            for left in range(9)
            if torch.equal(crop, framed[:, top : top + 32, left : left + 32])
        ]
        assert len(places) == 1
        shifts[places[0]] = True
    assert len(shifts) == 81  # all of them, the extremes included


def test_flips_are_mirror_images_of_half() -> None:
    image = torch.arange(12).view(1, 1, 3, 4)
    flipped = random_flip(image.expand(1000, -1, -1, -1), Generator().manual_seed(0))
    mirrored = (flipped == image.flip(3)).flatten(1).all(1)
    kept = (flipped == image).flatten(1).all(1)
    assert (mirrored ^ kept).all()
    assert 400 < mirrored.sum() < 600


def photograph(seed: int, size: int = 32) -> Tensor:
    """Smooth colours and some noise, as levels."""
    generator = Generator().manual_seed(seed)
    coarse = torch.rand(1, 3, 4, 4, generator=generator)
    smooth = nn.functional.interpolate(coarse, (size, size), mode="bicubic")
    noise = 0.05 * torch.randn(1, 3, size, size, generator=generator)
    return (255 * (0.2 + 0.6 * smooth + noise)).clamp(0, 255).round()


def as_pillow(image: Tensor) -> Image.Image:
    return Image.fromarray(image[0].byte().permute(1, 2, 0).numpy())


PILLOW: dict[str, Callable[[Image.Image, float], Image.Image]] = {
    "brightness": lambda image, level: ImageEnhance.Brightness(image).enhance(1 + 0.9 * level),
    "color": lambda image, level: ImageEnhance.Color(image).enhance(1 + 0.9 * level),
    "contrast": lambda image, level: ImageEnhance.Contrast(image).enhance(1 + 0.9 * level),
    "sharpness": lambda image, level: ImageEnhance.Sharpness(image).enhance(1 + 0.9 * level),
    "posterize": lambda image, level: ImageOps.posterize(image, 8 - round(4 * level)),
    "solarize": lambda image, level: ImageOps.solarize(image, math.ceil(255 * (1 - level))),
    "auto_contrast": lambda image, level: ImageOps.autocontrast(image),
    "equalize": lambda image, level: ImageOps.equalize(image),
    "invert": lambda image, level: ImageOps.invert(image),
    "identity": lambda image, level: image,
    "rotate": lambda image, level: image.rotate(30 * level),
}


@pytest.mark.parametrize("kind", PILLOW)
def test_changes_agree_with_pillow(kind: str) -> None:
    level = 0.3
    images = torch.cat([photograph(seed) for seed in range(2)])
    signs = torch.ones(2, dtype=torch.long)
    changed = augment._CHANGES[kind](images, torch.full((2,), level), signs)
    for image, got in zip(images.split(1), changed, strict=True):
        expected = np.asarray(PILLOW[kind](as_pillow(image), level)).transpose(2, 0, 1)
        off = np.abs(got.round().numpy() - expected)
        # Enhancers round to bytes on the way; turned pixels may sit between two.
        assert (off <= 2).mean() > 0.98 if kind == "rotate" else off.max() <= 2, off.max()


def test_shifts_and_shears_move_pixels() -> None:
    image, one = photograph(0), torch.ones(1, dtype=torch.long)
    level = torch.tensor([4 / 32 * 331 / 150])  # four pixels
    moved = augment._CHANGES["translate_x"](image, level, one)
    assert torch.equal(moved[..., :-4], image[..., 4:])
    moved = augment._CHANGES["translate_y"](image, level, -one)
    assert torch.equal(moved[:, :, 4:], image[:, :, :-4])
    sheared = augment._CHANGES["shear_x"](image, torch.ones(1), one)
    assert torch.equal(sheared[:, :, 0], image[:, :, 0])
    assert torch.equal(sheared[:, :, 30, :-9], image[:, :, 30, 9:])
    sideways = augment._CHANGES["shear_y"](image.transpose(2, 3), torch.ones(1), one)
    assert torch.equal(sideways.transpose(2, 3), sheared)


@pytest.mark.parametrize("policy", [augment.auto_augment, augment.rand_augment])
def test_policies_change_most_images_within_range(
    policy: Callable[[Tensor, Generator], Tensor],
) -> None:
    images = photograph(1).expand(200, -1, -1, -1)
    changed, again = (policy(images, Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(changed, again)
    assert changed.min() >= 0
    assert changed.max() <= 255
    same = (changed == images).flatten(1).all(1)
    assert same.float().mean() < 0.3
    assert len({tuple(one.flatten()[:50].tolist()) for one in changed}) > 20


# Picture files of any size: decoded, cut to boxes and trained on.
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
