"""The digits that scikit-learn carries, told apart by a perceptron: needs no data files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build a perceptron and the digits."""
    from hvadam_bench.models.digits import make_mlp
    from hvadam_bench.problems.digits import DigitsProblem

    return DigitsProblem(make_mlp, settings, seed)


TASK = Task(
    name="digits_mlp",
    title="Perceptron on scikit-learn's digits",
    source="extra",
    metric="accuracy",
    goal="max",
    build=build,
    scales={
        "smoke": {"epochs": 2, "batch_size": 64},
        "laptop": {"epochs": 600, "batch_size": 32},
        # No paper has it: "paper" only trains longer.
        "paper": {"epochs": 2000, "batch_size": 32},
    },
)
