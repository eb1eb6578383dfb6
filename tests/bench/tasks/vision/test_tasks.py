"""Image tasks, held to the published networks, schedules and settings."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_problems import smoke_images as problem
from torch import Tensor, nn

from hvadam_bench import tasks
from hvadam_bench.data import DataError
from hvadam_bench.tasks import get
from hvadam_bench.tasks._full_batch import FullBatchProblem
from hvadam_bench.tasks.vision.networks import VGG11
from hvadam_bench.tasks.vision.problems import autoencoder_full_batch, linear_error
from hvadam_bench.tasks.vision.vit import ViT, load_pretrained

NETWORKS = ("vgg11", "resnet34", "densenet121", "vit_b16")
VISION = [
    *(f"{data}_{network}" for data in ("cifar10", "cifar100") for network in NETWORKS),
    *("fashion_mnist_cnn", "fashion_mnist_60k", "cifar10_resnet8"),
    "imagenet_resnet50",
]


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
    paper["batch_size"] = 4  # of 20
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
    for lr in (1e-3, 1e-4, 1e-5):
        rates = [vit.rate(step, lr) for step in (0, per_epoch - 1)]
        assert rates == pytest.approx([lr / 3, lr])  # from 0, not from the floor
        middle, end = (vit.rate(epoch * per_epoch, lr) for epoch in (100, 200))
        assert (middle, end) == pytest.approx(((lr + 1e-5) / 2, 1e-5))


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


# Autoencoders of all images at once: the floor of the loss, PCA's error, batches.
def made(**changes: Any) -> FullBatchProblem:
    settings = get("autoencoder_full_batch").scales["smoke"]
    return autoencoder_full_batch(
        {**settings, "dtype": "float64", **changes}, seed=0, protocol="standard"
    )


class Perfect(nn.Module):
    """A network that gives back what it is given, as logits."""

    def forward(self, pixels: Tensor) -> Tensor:
        return torch.logit(pixels, eps=1e-12)


def test_the_loss_is_above_its_floor_by_what_is_not_told() -> None:
    problem = made()
    with torch.no_grad():
        problem.model = Perfect()
        found = problem.evaluate("valid")
    assert abs(found["loss"]) < 1e-9
    assert (found["pca_ratio"] < 1e-9, found["arrived"]) == (True, 1.0)


def test_an_untrained_network_has_not_arrived() -> None:
    found = made().evaluate("valid")
    assert found["loss"] > 0.01
    assert (found["pca_ratio"] > 1, found["arrived"]) == (True, 0.0)


def test_batches_that_cover_all_images_have_the_mean_of_all() -> None:
    problem = made(batch=16)
    with torch.no_grad():
        parts = [
            next(iter(problem.updates(part))).loss.item() for part in torch.arange(64).split(16)
        ]
    assert np.mean(parts) == pytest.approx(problem.evaluate("valid")["loss"], rel=1e-12)
    assert np.std(parts) > 1e-4


def test_pca_s_error_is_what_projections_leave() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 6)) @ np.diag([5, 4, 3, 2, 1, 0.5]) + 7
    centred = rows - rows.mean(0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    kept = vectors[:, -2:]
    left = centred - centred @ kept @ kept.T
    assert linear_error(torch.tensor(rows), 2) == pytest.approx((left**2).mean())


def test_images_are_shrunk_by_means() -> None:
    sides = {1: 28 * 28, 2: 14 * 14}
    for shrink, pixels in sides.items():
        first = next(made(shrink=shrink).model.parameters())
        assert first.shape[1] == pixels


# Published weights of the vision transformer, loaded and fine-tuned.
def tiny_vit(seed: int, size: int = 32) -> ViT:
    torch.manual_seed(seed)
    vit = ViT(classes=5, size=size, patch=8, dim=8, depth=2, heads=2)
    for parameter in vit.parameters():
        nn.init.normal_(parameter)
    return vit


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


def test_published_weights_load(tmp_path: Path) -> None:
    source, model = tiny_vit(0), tiny_vit(1)
    torch.save(as_pytorch_pretrained_vit(source.state_dict()), tmp_path / "vit.pth")
    head = copy.deepcopy(model.head)
    load_pretrained(model, tmp_path / "vit.pth")
    for name, value in source.state_dict().items():
        if not name.startswith("head."):
            assert torch.equal(model.state_dict()[name], value), name
    assert torch.equal(model.head.weight, head.weight)  # new classes, new head


def test_position_embeddings_follow_the_image_size(tmp_path: Path) -> None:
    source, model = tiny_vit(0, size=48), tiny_vit(1, size=32)
    ramp = torch.linspace(0, 1, 6)
    with torch.no_grad():
        source.positions[0, 1:] = (ramp[:, None] + 10 * ramp).reshape(36, 1)
    torch.save(as_pytorch_pretrained_vit(source.state_dict()), tmp_path / "vit.pth")
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
    torch.save(as_pytorch_pretrained_vit(other.state_dict()), path)
    with pytest.raises(ValueError, match=r"must hold \(1, 1, 8\) for 'token', got \(1, 1, 16\)"):
        load_pretrained(tiny_vit(0), path)
    monkeypatch.setenv("HVADAM_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"put B_16_imagenet1k\.pth .* there"):
        problem("cifar10_vit_b16", weights="vit/B_16_imagenet1k.pth")


def test_fine_tuning_starts_from_the_weights(tmp_path: Path) -> None:
    shape = {key: tasks.get("cifar10_vit_b16").scales["smoke"][key] for key in ("size", "patch")}
    source = tiny_vit(0)
    torch.save(as_pytorch_pretrained_vit(source.state_dict()), tmp_path / "vit.pth")
    fine = problem("cifar10_vit_b16", weights=str(tmp_path / "vit.pth"), dim=8, **shape)
    assert torch.equal(fine.networks["model"].state_dict()["token"], source.token)
