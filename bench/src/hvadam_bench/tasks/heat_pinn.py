"""The heat equation, solved by a network on points: smooth, full batch, float64.

Chosen to choose a step on, with the other tasks of `step_rule`; no paper has it at this size, so
there is no "paper" scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build a tanh perceptron and the points that its residuals are taken at."""
    from hvadam_bench.problems.physics.heat import Points, loss
    from hvadam_bench.tasks._full_batch import FullBatchProblem
    from hvadam_bench.tasks._perceptron import tanh_mlp

    points = Points.draw(settings["inside"], settings["edge"])
    widths = [2, *[settings["width"]] * settings["layers"], 1]
    return FullBatchProblem(
        lambda: tanh_mlp(widths),
        lambda network: loss(network, points),
        sum(map(len, points)),
        settings,
        seed,
    )


_LAPTOP = {"inside": 144, "edge": 25, "width": 16, "layers": 3, "steps": 1000, "warmup": 0.02}

TASK = Task(
    name="heat_pinn",
    title="Physics-informed network for the heat equation",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={
        "smoke": {**_LAPTOP, "inside": 20, "edge": 5, "width": 8, "layers": 2, "steps": 60},
        "laptop": _LAPTOP,
    },
    evaluations=5,
    smallest=1.25,
)
