"""A deep autoencoder of Fashion-MNIST, full batch: smooth, float32.

After Hinton and Salakhutdinov (doi:10.1126/science.1127647), whose 784-1000-500-250-30 and back is
the "paper" scale, and Martens (2010), who made it a test of optimizers; tanh units rather than
logistic ones, and no pretraining. The loss is the cross-entropy of pixels in [0, 1] above its
floor, their own entropy. `pca_ratio` is the squared error over that of the best linear code of the
same length, and a run has arrived when it is below 1. With "batch", a step sees so many images.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the autoencoder and its images."""
    from hvadam_bench.problems.reconstruction import reconstruction

    return reconstruction(settings, seed)


_LAPTOP = {
    **{"data": "fashion_mnist", "train_images": 512, "test_images": 1, "shrink": 2},
    **{"widths": [64, 32, 12], "steps": 2500, "warmup": 0.02},
    **{"batch": None, "dtype": "float32"},
}

TASK = Task(
    name="autoencoder_full_batch",
    title="Deep autoencoder of Fashion-MNIST, full batch",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={
        "smoke": {
            **_LAPTOP,
            **{"data": "synthetic", "train_images": 64, "widths": [16, 4], "steps": 60},
        },
        "laptop": _LAPTOP,
        "paper": {
            **_LAPTOP,
            **{"train_images": 60_000, "shrink": 1, "widths": [1000, 500, 250, 30]},
            "steps": 10_000,
        },
    },
    data=("fashion_mnist",),
    evaluations=30,
    smallest=1.25,
)
