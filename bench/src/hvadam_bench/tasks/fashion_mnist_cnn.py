"""A small CNN on Fashion-MNIST: not in the paper, but real data that everyone may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build a small CNN and the images of Fashion-MNIST."""
    from hvadam_bench.models.small_cnn import small_cnn
    from hvadam_bench.tasks._images import ImageProblem, small_images, step_decay

    return ImageProblem(
        lambda classes: small_cnn(classes, settings["width"]),
        small_images(settings, size=28, margin=2, channels=1, native=28),
        settings,
        seed,
        protocol,
        step_decay(settings["milestones"]),
        channels=((0.2860,), (0.3530,)),
    )


TASK = Task(
    name="fashion_mnist_cnn",
    title="Small CNN on Fashion-MNIST",
    source="extra",
    metric="accuracy",
    goal="max",
    build=build,
    scales={
        "smoke": {
            "data": "synthetic",
            "train_images": 200,
            "test_images": 50,
            "width": 4,
            "batch_size": 20,
            "epochs": 3,
            "milestones": [2],
            "weight_decay": 5e-4,
        },
        "laptop": {
            "data": "fashion_mnist",
            "train_images": 20_000,
            "test_images": None,
            "width": 16,
            "batch_size": 64,
            "epochs": 4,
            "milestones": [3],
            "weight_decay": 5e-4,
        },
        # No paper has it: "paper" is only a larger network and all the images.
        "paper": {
            "data": "fashion_mnist",
            "train_images": None,
            "test_images": None,
            "width": 64,
            "batch_size": 128,
            "epochs": 60,
            "milestones": [45],
            "weight_decay": 5e-4,
        },
    },
    data=("fashion_mnist",),
)
