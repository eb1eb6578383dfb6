"""Image tasks, held to the published networks, schedules and settings."""

from __future__ import annotations

import pytest
import torch
from made_problems import smoke_images as problem
from torch import nn

from hvadam_bench import tasks
from hvadam_bench.tasks.vision.networks import VGG11

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
