"""A ResNet of 8 layers on all of CIFAR-10.

Its stem halves the image, which makes a step four times as quick. 5,000 of the 50,000 training
images are held out for validation, whose standard error at 80% is 0.57 points; a curve is of 1,000
of them, but for its last point, by which rates are chosen. Half as many "steps" are the same
training at half length: the schedule follows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the ResNet and the images."""
    from hvadam_bench.models.resnet import resnet8
    from hvadam_bench.tasks._images import ImageProblem, small_images

    return ImageProblem(
        lambda classes: resnet8(classes, settings["width"]),
        small_images(settings),
        settings,
        seed,
        protocol,
        schedule=None,
        channels_last=True,
    )


_LAPTOP = {
    **{"data": "cifar10", "train_images": None, "test_images": None, "width": 32},
    **{"batch_size": 128, "steps": 1000, "warmup": 0.05, "weight_decay": 0.05},
    "curve_images": 1000,
}

TASK = Task(
    name="cifar10_resnet8",
    title="ResNet of 8 layers on all of CIFAR-10",
    source="extra",
    metric="accuracy",
    goal="max",
    build=build,
    scales={
        "smoke": {
            **_LAPTOP,
            # With a width of 4, torch's strided 1x1 convolution aborts on CPUs without AVX-512.
            **{"data": "synthetic", "train_images": 200, "test_images": 50, "width": 8},
            **{"batch_size": 20, "steps": 30, "curve_images": 10},
        },
        "laptop": _LAPTOP,
    },
    data=("cifar10",),
    evaluations=30,
)
