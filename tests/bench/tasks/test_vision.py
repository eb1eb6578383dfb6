"""Image tasks: networks, augmentation, batches and schedules, held to the published protocols."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Generator, Tensor, nn

from hvadam.bench import tasks
from hvadam.bench.data import DataError, imagenet
from hvadam.bench.data.images import ImageData
from hvadam.bench.models.vgg import VGG11
from hvadam.bench.models.vit import ViT, load_pretrained
from hvadam.bench.tasks import _augment as augment
from hvadam.bench.tasks import _images, _pictures
from hvadam.bench.tasks._images import ImageProblem, InMemory, Parts

NETWORKS = ("vgg11", "resnet34", "densenet121", "vit_b16")
VISION = [
    *(f"{data}_{network}" for data in ("cifar10", "cifar100") for network in NETWORKS),
    "fashion_mnist_cnn",
    "imagenet_resnet50",
]


def problem(name: str, protocol: str = "standard", seed: int = 0, **settings: Any) -> ImageProblem:
    task = tasks.get(name)
    built = task.build({**task.scales["smoke"], **settings}, seed, protocol)
    assert isinstance(built, ImageProblem)
    return built


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("cifar10_vgg11", 9_750_922),
        ("cifar10_resnet34", 21_282_122),
        ("cifar10_densenet121", 6_956_298),
        ("imagenet_resnet50", 25_557_032 - 990 * 2049),
        ("cifar10_vit_b16", 86_567_656 - 990 * 769),
    ],
)
def test_paper_scale_is_the_published_network(
    name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spare millions of random numbers: the values do not matter here.
    for init in ("kaiming_normal_", "kaiming_uniform_", "normal_", "uniform_", "xavier_uniform_"):
        monkeypatch.setattr(nn.init, init, lambda tensor, *_, **__: tensor)
    task = tasks.get(name)
    paper = {**task.scales["paper"], "data": "synthetic", "train_images": 20, "test_images": 10}
    built = task.build(paper | ({"weights": None} if "weights" in paper else {}), 0, "standard")
    found = sum(p.numel() for p in built.networks["model"].parameters())
    assert found == count  # with ten classes; the counts of ImageNet's networks are for a thousand


def test_vgg_starts_as_published() -> None:
    conv = VGG11(10, width=32).features[-3]
    assert isinstance(conv, nn.Conv2d)
    assert conv.bias is not None
    assert conv.weight.std().item() == pytest.approx((2 / (9 * 256)) ** 0.5, rel=0.01)
    assert not conv.bias.any()


@pytest.mark.parametrize("name", [name for name in VISION if not name.startswith("cifar100_")])
def test_smoke_trains(name: str) -> None:
    torch.manual_seed(0)  # of dropout
    one = problem(name)
    optimizer = torch.optim.Adam(one.networks["model"].parameters(), lr=5e-3)
    losses = []
    for step in range(one.steps):
        for update in one.updates(one.batch(step)):
            optimizer.zero_grad()
            update.loss.backward()
            optimizer.step()
            losses.append(update.loss.item())
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])


@pytest.mark.parametrize("name", VISION)
def test_smoke_shows_all_its_classes_in_every_part(name: str) -> None:
    parts = problem(name).parts
    shown = {part: set(pictures.labels[i].tolist()) for part, (pictures, i) in parts.items()}
    assert shown["train"] == shown["test"] == set(range(10))
    assert len(shown["valid"]) > 5


def test_evaluation_averages_over_images_in_eval_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    one = problem("cifar10_vgg11")
    model = one.networks["model"]
    whole = one.evaluate("valid")
    assert model.training
    monkeypatch.setattr(_images, "_EVALUATION_BATCH", 7)  # 20 images: the last batch is of 6
    assert one.evaluate("valid") == pytest.approx(whole)
    pictures, indices = one.parts["valid"]
    with torch.no_grad():
        logits = model.eval()(one._normalised(pictures.centred(indices).float()))
    right = logits.argmax(1) == pictures.labels[indices]
    loss = nn.functional.cross_entropy(logits, pictures.labels[indices])
    assert whole == pytest.approx(
        {"accuracy": 100 * right.double().mean().item(), "loss": loss.item()}
    )
    one.evaluate("test")
    assert not model.training  # as it was


@pytest.mark.parametrize("name", VISION)
def test_scales_share_their_keys(name: str) -> None:
    keys = {scale: set(settings) for scale, settings in tasks.get(name).scales.items()}
    assert all(one == keys["smoke"] for one in keys.values())


@pytest.mark.parametrize("protocol", ["standard", "inherited"])
def test_batches_are_the_same_whenever_asked_for(protocol: str) -> None:
    one, again = (problem("cifar10_vit_b16", protocol, seed=3) for _ in range(2))
    other = problem("cifar10_vit_b16", protocol, seed=4)
    steps = [(7, 0), (2, 1), (one.steps - 1, 2), (2, 0)]
    first = [one.batch(*which) for which in steps]
    for which, batch in reversed(list(zip(steps, first, strict=True))):
        assert torch.equal(again.batch(*which).images, batch.images)
        assert torch.equal(again.batch(*which).labels, batch.labels)
        assert not torch.equal(other.batch(*which).images, batch.images)
    assert torch.equal(
        one.networks["model"].state_dict()["positions"],
        again.networks["model"].state_dict()["positions"],
    )


def numbered(count: int) -> Parts:
    """Black images whose labels are their own numbers."""
    data = _images.synthetic(count, 20)
    train = InMemory(data.train, 32, margin=4)
    train.labels = torch.arange(count)
    return Parts(train, InMemory(data.test, 32, margin=4), 10)


def settings(**changes: Any) -> dict[str, Any]:
    return {"epochs": 2, "batch_size": 32, "weight_decay": 0.0, **changes}


def seen(one: ImageProblem, steps: range) -> list[int]:
    return sorted(label for step in steps for label in one.batch(step).labels.tolist())


def test_an_epoch_is_the_training_part_and_validation_is_never_drawn() -> None:
    one = ImageProblem(
        lambda classes: nn.Linear(1, 1), numbered(200), settings(), 0, "standard", lambda epoch: 1.0
    )
    assert one.steps == 2 * 6  # 180 images in batches of 32, the last of 20
    kept = [number for number in range(200) if number % 10 != 9]
    for epoch in range(2):
        assert seen(one, range(6 * epoch, 6 * epoch + 6)) == kept
    assert one.parts["valid"][1].tolist() == list(range(9, 200, 10))
    assert not torch.equal(one.batch(0).labels, one.batch(6).labels)


def test_inherited_epochs_are_three_passes_over_everything() -> None:
    one = ImageProblem(
        lambda classes: nn.Linear(1, 1),
        numbered(96),
        settings(),
        0,
        "inherited",
        _images.step_decay([1]),
        loaders=3,
    )
    assert one.steps == 2 * 3 * 3
    for loader in range(3):  # each pass is in an order of its own
        assert seen(one, range(loader, 9, 3)) == list(range(96))
    assert not torch.equal(one.batch(0).labels, one.batch(1).labels)
    assert [one.lr_factor(step) for step in (8, 9)] == [1.0, 0.1]
    assert one.parts["valid"][0] is one.parts["test"][0]


def test_paper_schedules() -> None:
    tiny = {"data": "synthetic", "train_images": 20, "test_images": 10, "batch_size": 6}
    paper = {**tasks.get("cifar10_vgg11").scales["paper"], **tiny, "width": 4}
    cnn = tasks.get("cifar10_vgg11").build(paper, 0, "standard")
    per_epoch = 3
    assert cnn.steps == 200 * per_epoch
    assert cnn.lr_factor(0) == cnn.lr_factor(150 * per_epoch - 1) == 1.0
    assert cnn.lr_factor(150 * per_epoch) == cnn.lr_factor(cnn.steps - 1) == pytest.approx(0.1)

    small = {"size": 32, "width": 4, "depths": [1, 1, 1, 1]}
    paper = {**tasks.get("imagenet_resnet50").scales["paper"], **tiny, **small}
    resnet = tasks.get("imagenet_resnet50").build(paper, 0, "standard")
    assert [resnet.lr_factor(step) for step in range(4)] == pytest.approx([1 / 3, 2 / 3, 1, 1])
    at = [resnet.lr_factor(epoch * per_epoch) for epoch in (29, 30, 59, 60, 89)]
    assert at == pytest.approx([1, 0.1, 0.1, 0.01, 0.01])

    small = {"weights": None, "size": 32, "dim": 16, "depth": 1, "heads": 2}
    paper = {**tasks.get("cifar10_vit_b16").scales["paper"], **tiny, **small}
    vit = tasks.get("cifar10_vit_b16").build(paper, 0, "standard")
    assert vit.lr_factor(per_epoch - 1) == pytest.approx(1)
    assert vit.lr_factor(100 * per_epoch) == pytest.approx(0.01 + 0.99 / 2)
    assert vit.lr_factor(200 * per_epoch) == pytest.approx(0.01)


def test_paper_settings() -> None:
    for data in ("cifar10", "cifar100"):
        for network in ("vgg11", "resnet34", "densenet121"):
            task = tasks.get(f"{data}_{network}")
            paper = task.scales["paper"]
            assert (paper["data"], paper["batch_size"], paper["epochs"]) == (data, 128, 200)
            assert (paper["milestones"], paper["weight_decay"]) == ([150], 5e-4)
            assert problem(task.name).networks["model"](torch.zeros(2, 3, 32, 32)).shape == (
                2,
                100 if data == "cifar100" else 10,
            )


def test_normalisation_is_the_published_one() -> None:
    one = problem("cifar100_resnet34")  # CIFAR-10's constants, as published
    levels = torch.tensor([0.0, 127.5, 255.0]).view(3, 1, 1, 1).expand(3, 3, 2, 2)
    mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1)
    deviation = torch.tensor([0.2023, 0.1994, 0.2010]).view(1, 3, 1, 1)
    torch.testing.assert_close(one._normalised(levels), (levels / 255 - mean) / deviation)


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
    flipped = augment.random_flip(image.expand(1000, -1, -1, -1), Generator().manual_seed(0))
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


def test_variants_differ_on_the_same_pictures() -> None:
    one = problem("cifar10_resnet34")
    plain, *others = (one.batch(5, variant) for variant in range(3))
    for other in others:
        assert torch.equal(other.labels, plain.labels)
        assert not torch.equal(other.images, plain.images)


def test_averaging_contenders_can_ask_for_any_variant() -> None:
    one = problem("fashion_mnist_cnn")
    assert torch.equal(one.batch(0, 3).images, one.batch(0, 0).images)


def test_enlarged_images() -> None:
    data = _images.synthetic(20, 10)
    large = InMemory(data.train, 64, margin=4).centred(torch.arange(2))
    assert large.dtype == torch.uint8
    assert large.shape == (2, 3, 64, 64)
    small = InMemory(data.train, 32, margin=4).centred(torch.arange(2)).float()
    shrunk = nn.functional.avg_pool2d(large.float(), 2)
    assert (shrunk - small).abs().mean() < 20


def test_inherited_batches_must_be_full() -> None:
    assert problem("cifar10_vit_b16", batch_size=201, epochs=3).steps == 3
    with pytest.raises(ValueError, match=r"batch_size must be at most 200, .* got 201"):
        problem("cifar10_vit_b16", "inherited", batch_size=201)


def test_parts_of_a_data_set_are_refused_at_paper_scale() -> None:
    data = _images.synthetic(100, 10)
    partial = ImageData(data.train, data.test, 10, missing=("data_batch_5.bin",))
    assert len(_images.first("cifar10", partial, 50, None).train) == 50
    for count in (None, 101):
        with pytest.raises(DataError, match=r"cifar10: .*data_batch_5\.bin are missing"):
            _images.first("cifar10", partial, count, None)


# Pre-trained transformers


def tiny_vit(seed: int, size: int = 32) -> ViT:
    torch.manual_seed(seed)
    vit = ViT(classes=5, size=size, patch=8, dim=8, depth=2, heads=2)
    for parameter in vit.parameters():
        nn.init.normal_(parameter)
    return vit


def as_timm(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    named = {
        "cls_token": weights["token"],
        "pos_embed": weights["positions"],
        "patch_embed.proj.weight": weights["patches.weight"],
        "patch_embed.proj.bias": weights["patches.bias"],
        "norm.weight": weights["norm.weight"],
        "norm.bias": weights["norm.bias"],
        "head.weight": torch.zeros(1000, 8),
        "head.bias": torch.zeros(1000),
    }
    places = {
        "norm1": "norm1",
        "attn.qkv": "qkv",
        "attn.proj": "out",
        "norm2": "norm2",
        "mlp.fc1": "mlp1",
        "mlp.fc2": "mlp2",
    }
    for i in range(2):
        for theirs, ours in places.items():
            for kind in ("weight", "bias"):
                named[f"blocks.{i}.{theirs}.{kind}"] = weights[f"blocks.{i}.{ours}.{kind}"]
    return named


def as_pytorch_pretrained_vit(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    named = {
        "class_token": weights["token"],
        "positional_embedding.pos_embedding": weights["positions"],
        "patch_embedding.weight": weights["patches.weight"],
        "patch_embedding.bias": weights["patches.bias"],
        "norm.weight": weights["norm.weight"],
        "norm.bias": weights["norm.bias"],
        "fc.weight": torch.zeros(1000, 8),
        "fc.bias": torch.zeros(1000),
    }
    places = {"norm1": "norm1", "proj": "out", "norm2": "norm2"}
    places |= {"pwff.fc1": "mlp1", "pwff.fc2": "mlp2"}
    for i in range(2):
        block = f"transformer.blocks.{i}"
        for kind in ("weight", "bias"):
            for theirs, ours in places.items():
                named[f"{block}.{theirs}.{kind}"] = weights[f"blocks.{i}.{ours}.{kind}"]
            for part, value in zip("qkv", weights[f"blocks.{i}.qkv.{kind}"].chunk(3), strict=True):
                named[f"{block}.attn.proj_{part}.{kind}"] = value
    return named


def as_jax(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    named = {
        "cls": weights["token"],
        "Transformer/posembed_input/pos_embedding": weights["positions"],
        "embedding/kernel": weights["patches.weight"].permute(2, 3, 1, 0),
        "embedding/bias": weights["patches.bias"],
        "Transformer/encoder_norm/scale": weights["norm.weight"],
        "Transformer/encoder_norm/bias": weights["norm.bias"],
        "head/kernel": torch.zeros(8, 1000),
        "head/bias": torch.zeros(1000),
    }
    for i in range(2):
        theirs, ours = f"Transformer/encoderblock_{i}", f"blocks.{i}"
        for number, norm in ((0, "norm1"), (2, "norm2")):
            named[f"{theirs}/LayerNorm_{number}/scale"] = weights[f"{ours}.{norm}.weight"]
            named[f"{theirs}/LayerNorm_{number}/bias"] = weights[f"{ours}.{norm}.bias"]
        for number, layer in ((0, "mlp1"), (1, "mlp2")):
            dense = f"{theirs}/MlpBlock_3/Dense_{number}"
            named[f"{dense}/kernel"] = weights[f"{ours}.{layer}.weight"].T
            named[f"{dense}/bias"] = weights[f"{ours}.{layer}.bias"]
        attention = f"{theirs}/MultiHeadDotProductAttention_1"
        named[f"{attention}/out/kernel"] = weights[f"{ours}.out.weight"].T.reshape(2, 4, 8)
        named[f"{attention}/out/bias"] = weights[f"{ours}.out.bias"]
        rows = zip(
            ("query", "key", "value"),
            weights[f"{ours}.qkv.weight"].chunk(3),
            weights[f"{ours}.qkv.bias"].chunk(3),
            strict=True,
        )
        for part, kernel, bias in rows:
            named[f"{attention}/{part}/kernel"] = kernel.T.reshape(8, 2, 4)
            named[f"{attention}/{part}/bias"] = bias.reshape(2, 4)
    return named


@pytest.mark.parametrize("layout", [as_timm, as_pytorch_pretrained_vit, as_jax])
def test_published_weights_load(
    layout: Callable[[dict[str, Tensor]], dict[str, Tensor]], tmp_path: Path
) -> None:
    source, model = tiny_vit(0), tiny_vit(1)
    content = layout(source.state_dict())
    path = tmp_path / ("vit.npz" if layout is as_jax else "vit.pth")
    if layout is as_jax:
        np.savez(path, **{name: value.numpy() for name, value in content.items()})  # pyright: ignore[reportArgumentType]
    else:
        torch.save(content, path)
    head = copy.deepcopy(model.head)
    load_pretrained(model, path)
    for name, value in source.state_dict().items():
        if not name.startswith("head."):
            assert torch.equal(model.state_dict()[name], value), name
    assert torch.equal(model.head.weight, head.weight)  # new classes, new head


def test_position_embeddings_follow_the_image_size(tmp_path: Path) -> None:
    source, model = tiny_vit(0, size=48), tiny_vit(1, size=32)
    ramp = torch.linspace(0, 1, 6)
    with torch.no_grad():
        source.positions[0, 1:] = (ramp[:, None] + 10 * ramp).reshape(36, 1)
    torch.save(as_timm(source.state_dict()), tmp_path / "vit.pth")
    load_pretrained(model, tmp_path / "vit.pth")
    assert torch.equal(model.positions[:, 0], source.positions[:, 0])
    ramp = torch.linspace(0, 1, 4)
    torch.testing.assert_close(
        model.positions[0, 1:, 0].detach(), (ramp[:, None] + 10 * ramp).reshape(16)
    )


def test_wrong_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "vit.pth"
    path.write_bytes(b"half a downl")
    with pytest.raises(ValueError, match=r"vit\.pth cannot be read as a checkpoint"):
        load_pretrained(tiny_vit(0), path)
    torch.save({"conv1.weight": torch.zeros(1)}, path)
    with pytest.raises(ValueError, match=r"vit\.pth has no class token"):
        load_pretrained(tiny_vit(0), path)
    other = ViT(classes=5, size=32, patch=8, dim=16, depth=2, heads=2)
    torch.save(as_timm(other.state_dict()), path)
    with pytest.raises(ValueError, match=r"must hold \(1, 1, 8\) for 'token', got \(1, 1, 16\)"):
        load_pretrained(tiny_vit(0), path)
    monkeypatch.setenv("HVADAM_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"put B_16_imagenet1k\.pth .* there"):
        problem("cifar10_vit_b16", weights="vit/B_16_imagenet1k.pth")


def test_fine_tuning_starts_from_the_weights(tmp_path: Path) -> None:
    shape = {key: tasks.get("cifar10_vit_b16").scales["smoke"][key] for key in ("size", "patch")}
    source = tiny_vit(0)
    torch.save(as_timm(source.state_dict()), tmp_path / "vit.pth")
    fine = problem("cifar10_vit_b16", weights=str(tmp_path / "vit.pth"), dim=8, **shape)
    assert torch.equal(fine.networks["model"].state_dict()["token"], source.token)


# ImageNet's folders


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
    monkeypatch.setattr("hvadam.bench.data.load", lambda name: imagenet.load(tmp_path, classes=2))
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
        box = _pictures.random_box(width, height, generator.random((10, 4)))
        left, top, right, bottom = box
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        if max(width, height) < 2 * min(width, height):
            assert (right - left) * (bottom - top) > 0.07 * width * height
            assert 0.6 < (right - left) / (bottom - top) < 1.6
    assert _pictures.central_box(100, 50, 0.8) == (30.0, 5.0, 70.0, 45.0)
