"""ResNet50 on ImageNet from scratch; its small stand-in trains on enlarged CIFAR-10 images.

90 epochs, a tenth of the learning rate from 30 and from 60 on, one epoch of warm-up. "standard"
passes over the pictures once an epoch, cut at random and flipped. The published rows are of
Lookaround's code, which "inherited" follows: an epoch is three such passes, flipped, AutoAugment
and RandAugment, each turned by up to 15 degrees. Its configuration says batches of 256, which its
command line makes 128 unless told otherwise; "batch_size" is a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hvadam_bench.tasks._spec import Problem, Task

if TYPE_CHECKING:
    from hvadam_bench.tasks._images import Parts


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build ResNet50 and its pictures."""
    from hvadam_bench.models.resnet import resnet50
    from hvadam_bench.tasks._images import ImageProblem, step_decay

    return ImageProblem(
        lambda classes: resnet50(classes, settings["width"], settings["depths"]),
        _pictures(settings),
        settings,
        seed,
        protocol,
        step_decay(settings["milestones"]),
        warmup=settings["warmup"],
        channels=((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        loaders=3,
        rotation=15.0,
    )


def _pictures(settings: Mapping[str, Any]) -> Parts:
    if settings["data"] != "imagenet":
        from hvadam_bench.tasks._images import small_images

        return small_images(settings, settings["size"])
    from hvadam_bench.data import load
    from hvadam_bench.problems.pictures import Decoded
    from hvadam_bench.tasks._images import Parts

    folders, size = load("imagenet"), settings["size"]
    return Parts(Decoded(folders.train, size), Decoded(folders.test, size), folders.classes)


TASK = Task(
    name="imagenet_resnet50",
    title="ResNet50 on ImageNet",
    source="Table 1",
    metric="accuracy",
    goal="max",
    build=build,
    scales={
        "smoke": {
            "data": "synthetic",
            "train_images": 200,
            "test_images": 50,
            "size": 32,
            "width": 4,
            "depths": [1, 1, 1, 1],
            "batch_size": 20,
            "epochs": 3,
            "warmup": 0.5,
            "milestones": [1, 2],
            "weight_decay": 5e-4,
        },
        "laptop": {
            "data": "cifar10",
            "train_images": 10_000,
            "test_images": None,
            "size": 64,
            "width": 8,
            "depths": [1, 1, 1, 1],
            "batch_size": 64,
            "epochs": 3,
            "warmup": 0.25,
            "milestones": [1.5, 2.25],
            "weight_decay": 5e-4,
        },
        "paper": {
            "data": "imagenet",
            "train_images": None,
            "test_images": None,
            "size": 224,
            "width": 64,
            "depths": [3, 4, 6, 3],
            "batch_size": 256,
            "epochs": 90,
            "warmup": 1,
            "milestones": [30, 60],
            "weight_decay": 5e-4,
        },
    },
    data=("imagenet", "cifar10"),
    protocols=("standard", "inherited"),
    published={
        "sgd": 76.49,
        "adam": 72.87,
        "adai": 76.80,
        "swa": 76.78,
        "lookahead": 76.52,
        "lookaround": 77.32,
        "hvadam": 77.22,
    },
    published_from="They are the paper's Table 1. SGD, Adam and Adai are quoted there from Adai's "
    "paper, whose settings are not known; SWA, Lookahead and Lookaround from Lookaround's, whose "
    "epochs are three passes each; HVAdam was run with Lookaround's code.",
)
