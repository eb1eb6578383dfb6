"""The digits that scikit-learn carries, told apart by a small CNN: needs no data files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build a small CNN and the digits."""
    from hvadam_bench.models.digits import make_cnn
    from hvadam_bench.problems.digits import DigitsProblem

    return DigitsProblem(make_cnn, settings, seed)


TASK = Task(
    name="digits_cnn",
    title="Small CNN on scikit-learn's digits",
    source="extra",
    metric="accuracy",
    goal="max",
    build=build,
    scales={
        "smoke": {"epochs": 2, "batch_size": 64},
        "laptop": {"epochs": 240, "batch_size": 32},
        # No paper has it: "paper" only trains longer.
        "paper": {"epochs": 800, "batch_size": 32},
    },
)
