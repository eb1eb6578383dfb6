"""A CNN of two convolutions on all of Fashion-MNIST.

6,000 of the 60,000 training images are held out for validation, whose standard error at 91% is 0.37
points. Half as many "steps" are the same training at half length: the schedule follows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the CNN and the images."""
    from hvadam_bench.models.small_cnn import small_cnn
    from hvadam_bench.tasks._images import ImageProblem, small_images

    return ImageProblem(
        lambda classes: small_cnn(classes, settings["width"]),
        small_images(settings, size=28, margin=2, channels=1, native=28),
        settings,
        seed,
        protocol,
        schedule=None,
        channels=((0.2860,), (0.3530,)),
        channels_last=True,
    )


_LAPTOP = {
    **{"data": "fashion_mnist", "train_images": None, "test_images": None, "width": 16},
    **{"batch_size": 128, "steps": 3600, "warmup": 0.05, "weight_decay": 0.05},
}

TASK = Task(
    name="fashion_mnist_60k",
    title="CNN of two convolutions on all of Fashion-MNIST",
    source="extra",
    metric="accuracy",
    goal="max",
    build=build,
    scales={
        "smoke": {
            **_LAPTOP,
            **{"data": "synthetic", "train_images": 200, "test_images": 50, "width": 4},
            **{"batch_size": 20, "steps": 30},
        },
        "laptop": _LAPTOP,
    },
    data=("fashion_mnist",),
    evaluations=30,
)
