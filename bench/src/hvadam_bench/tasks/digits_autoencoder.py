"""A deep autoencoder of scikit-learn's digits, full batch: smooth, float64.

Squared error of all training pixels, whose floor is what eight numbers can tell of a digit. Chosen
to choose a step on, with the other tasks of `step_rule`; there is no "paper" scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the autoencoder and its images."""
    from torch.nn.functional import mse_loss

    from hvadam_bench.problems.digits import parts
    from hvadam_bench.tasks._full_batch import FullBatchProblem
    from hvadam_bench.tasks._perceptron import tanh_mlp

    pixels = parts()["train"].pixels[: settings["images"]].flatten(1).double()
    widths = [64, *settings["widths"]]
    return FullBatchProblem(
        lambda: tanh_mlp([*widths, *reversed(widths[:-1])]),
        lambda network: mse_loss(network(pixels), pixels),
        len(pixels),
        settings,
        seed,
    )


_LAPTOP = {"images": 200, "widths": [40, 20, 8], "steps": 1000, "warmup": 0.02}

TASK = Task(
    name="digits_autoencoder",
    title="Deep autoencoder of digits, full batch",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={
        "smoke": {**_LAPTOP, "images": 40, "widths": [16, 8], "steps": 60},
        "laptop": _LAPTOP,
    },
    evaluations=5,
    smallest=1.25,
)
