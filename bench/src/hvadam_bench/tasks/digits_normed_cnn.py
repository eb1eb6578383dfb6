"""A small CNN with batch norm on scikit-learn's digits, judged by its loss.

Chosen to choose a step on, with the other tasks of `step_rule`; there is no "paper" scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the CNN and the digits."""
    from hvadam_bench.models.digits import make_normed_cnn
    from hvadam_bench.problems.digits import AnnealedDigitsProblem

    return AnnealedDigitsProblem(make_normed_cnn, settings, seed)


_LAPTOP = {"batch_size": 32, "epochs": 14, "warmup": 0.05}

TASK = Task(
    name="digits_normed_cnn",
    title="Small CNN with batch norm on scikit-learn's digits",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={"smoke": {**_LAPTOP, "batch_size": 64, "epochs": 2}, "laptop": _LAPTOP},
    evaluations=5,
)
