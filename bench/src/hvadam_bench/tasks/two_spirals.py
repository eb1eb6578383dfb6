"""Two spirals told apart by a small perceptron: smooth, full batch, float64.

Chosen to choose a step on, with the other tasks of `step_rule`; there is no "paper" scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build a tanh perceptron and the points of both spirals."""
    from torch.nn.functional import binary_cross_entropy_with_logits

    from hvadam_bench.problems.made_functions import spirals
    from hvadam_bench.tasks._full_batch import FullBatchProblem
    from hvadam_bench.tasks._perceptron import tanh_mlp

    points, labels = spirals(settings["points"], settings["turns"])
    width = settings["width"]
    return FullBatchProblem(
        lambda: tanh_mlp([2, width, width, 1]),
        lambda network: binary_cross_entropy_with_logits(network(points).squeeze(1), labels),
        len(points),
        settings,
        seed,
    )


_LAPTOP = {"points": 200, "turns": 1.75, "width": 24, "steps": 2000, "warmup": 0.02}

TASK = Task(
    name="two_spirals",
    title="Two spirals, full batch",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={
        "smoke": {**_LAPTOP, "points": 40, "turns": 0.5, "width": 8, "steps": 60},
        "laptop": _LAPTOP,
    },
    evaluations=5,
    smallest=1.25,
)
