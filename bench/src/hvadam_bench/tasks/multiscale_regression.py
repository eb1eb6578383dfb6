"""A sum of slow and fast waves fitted by a perceptron: smooth, full batch, float64.

Chosen to choose a step on, with the other tasks of `step_rule`; there is no "paper" scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build a tanh perceptron and the function's values."""
    from torch.nn.functional import mse_loss

    from hvadam_bench.problems.made_functions import waves
    from hvadam_bench.tasks._full_batch import FullBatchProblem
    from hvadam_bench.tasks._perceptron import tanh_mlp

    x, y = waves(settings["points"], settings["frequencies"])
    width = settings["width"]
    return FullBatchProblem(
        lambda: tanh_mlp([1, width, width, 1]),
        lambda network: mse_loss(network(x), y),
        len(x),
        settings,
        seed,
    )


_LAPTOP = {"points": 128, "frequencies": [1, 2], "width": 32, "steps": 1500, "warmup": 0.02}

TASK = Task(
    name="multiscale_regression",
    title="Waves of several lengths fitted, full batch",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={
        "smoke": {**_LAPTOP, "points": 32, "frequencies": [1], "width": 8, "steps": 60},
        "laptop": _LAPTOP,
    },
    evaluations=5,
    smallest=1.25,
)
