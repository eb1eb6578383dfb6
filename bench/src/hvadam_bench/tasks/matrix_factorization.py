"""An ill-conditioned matrix written as a product of two thin ones: smooth, full batch, float64.

The loss is the squared error over the squared size of the matrix. Chosen to choose a step on, with
the other tasks of `step_rule`; there is no "paper" scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build both factors and the matrix, all of whose entries are seen."""
    from hvadam_bench.models.factors import Factors
    from hvadam_bench.problems.made_functions import low_rank_matrix
    from hvadam_bench.tasks._full_batch import FullBatchProblem

    size, rank = settings["size"], settings["rank"]
    matrix = low_rank_matrix(size, rank, settings["condition"])
    whole = matrix.square().sum()
    return FullBatchProblem(
        lambda: Factors(size, size, rank),
        lambda factors: (factors() - matrix).square().sum() / whole,
        matrix.numel(),
        settings,
        seed,
    )


_LAPTOP = {"size": 60, "rank": 8, "condition": 1e4, "steps": 1500, "warmup": 0.02}

TASK = Task(
    name="matrix_factorization",
    title="Factorization of an ill-conditioned matrix",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={
        "smoke": {**_LAPTOP, "size": 10, "rank": 2, "condition": 10.0, "steps": 60},
        "laptop": _LAPTOP,
    },
    evaluations=5,
    smallest=1.25,
)
