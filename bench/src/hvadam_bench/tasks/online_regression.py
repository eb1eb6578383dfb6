"""A perceptron that learns another one from a stream of noisy examples, each seen once.

Chosen to choose a step on, with the other tasks of `step_rule`; there is no "paper" scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the perceptron, its teacher and the stream."""
    from hvadam_bench.problems.online_regression import OnlineRegressionProblem

    return OnlineRegressionProblem(settings, seed)


_LAPTOP = {
    **{"inputs": 24, "spread": 30.0, "width": 32, "noise": 0.3, "evaluated": 2000},
    **{"batch_size": 16, "steps": 2000, "warmup": 0.05},
}

TASK = Task(
    name="online_regression",
    title="Regression on a stream of noisy examples",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={
        "smoke": {**_LAPTOP, "inputs": 6, "width": 8, "evaluated": 200, "steps": 60},
        "laptop": _LAPTOP,
    },
    stream=True,
    evaluations=5,
)
