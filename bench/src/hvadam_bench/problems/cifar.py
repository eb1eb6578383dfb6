"""The convolutional networks of the paper's CIFAR experiments: what their six tasks share.

200 epochs in batches of 128, cropped out of a margin of 4 and flipped, learning rate a tenth from
epoch 150 on. CIFAR-100 is normalised with CIFAR-10's constants, as published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hvadam_bench.tasks._spec import Problem, Task

if TYPE_CHECKING:
    from torch import nn

_TITLES = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "vgg11": "VGG11 without batch norm",
    "resnet34": "ResNet34",
    "densenet121": "DenseNet121",
}
_CLASSES = {"cifar10": 10, "cifar100": 100}
_FROM = (
    "They are accuracies after the last of 200 epochs, from the curves of the re-run (Buvanesh & "
    "Panwar, 2021) that the paper took its baselines from; of HVAdam there are only curves."
)
_PAPER = {
    "train_images": None,
    "test_images": None,
    "batch_size": 128,
    "epochs": 200,
    "milestones": [150],
    "weight_decay": 5e-4,
}
_LAPTOP = {**_PAPER, "train_images": 10_000, "batch_size": 64}
_SMOKE = {
    **_PAPER,
    "data": "synthetic",
    "train_images": 200,
    "test_images": 50,
    "batch_size": 20,
    "epochs": 3,
    "milestones": [2],
}
# What the networks are made of, and how long the small ones train. The small VGG has less dropout:
# under 0.5 it learns too little in so few steps for contenders to differ.
_NETWORKS: dict[str, dict[str, dict[str, Any]]] = {
    "vgg11": {
        "smoke": {"width": 8, "dropout": 0.1},
        "laptop": {"width": 8, "dropout": 0.1, "epochs": 6, "milestones": [4.5]},
        "paper": {"width": 64, "dropout": 0.5},
    },
    "resnet34": {
        "smoke": {"width": 4, "depths": [1, 1, 1, 1]},
        "laptop": {"width": 8, "depths": [1, 1, 1, 1], "epochs": 4, "milestones": [3]},
        "paper": {"width": 64, "depths": [3, 4, 6, 3]},
    },
    "densenet121": {
        "smoke": {"growth": 4, "depths": [1, 1, 1, 1]},
        "laptop": {"growth": 6, "depths": [1, 1, 2, 2], "epochs": 3, "milestones": [2.25]},
        "paper": {"growth": 32, "depths": [6, 12, 24, 16]},
    },
}


def task(data: str, network: str, published: Mapping[str, float], note: str = "") -> Task:
    """Return the task of one network on one of the two data sets.

    Args:
        data: Which of the two.
        network: Which of the three.
        published: Accuracies after the last of 200 epochs.
        note: What is to be said of them besides where all of them are from.
    """
    sizes = _NETWORKS[network]
    return Task(
        name=f"{data}_{network}",
        title=f"{_TITLES[network]} on {_TITLES[data]}",
        source="CNN figures",
        metric="accuracy",
        goal="max",
        build=lambda settings, seed, protocol: _build(data, network, settings, seed, protocol),
        scales={
            "smoke": {**_SMOKE, **sizes["smoke"]},
            "laptop": {"data": data, **_LAPTOP, **sizes["laptop"]},
            "paper": {"data": data, **_PAPER, **sizes["paper"]},
        },
        data=(data,),
        protocols=("standard", "inherited"),
        published=published,
        published_from=f"{_FROM} {note}".strip(),
    )


def _build(
    data: str, network: str, settings: Mapping[str, Any], seed: int, protocol: str
) -> Problem:
    from hvadam_bench.tasks._images import ImageProblem, small_images, step_decay

    return ImageProblem(
        _makers(settings)[network],
        small_images(settings, classes=_CLASSES[data]),
        settings,
        seed,
        protocol,
        step_decay(settings["milestones"]),
    )


def _makers(settings: Mapping[str, Any]) -> dict[str, Callable[[int], nn.Module]]:
    from hvadam_bench.models.densenet import DenseNet
    from hvadam_bench.models.resnet import resnet34
    from hvadam_bench.models.vgg import VGG11

    return {
        "vgg11": lambda classes: VGG11(classes, settings["width"], settings["dropout"]),
        "resnet34": lambda classes: resnet34(classes, settings["width"], settings["depths"]),
        "densenet121": lambda classes: DenseNet(classes, settings["growth"], settings["depths"]),
    }
