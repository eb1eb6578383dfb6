"""An ill-conditioned matrix of low rank completed from some of its entries: smooth, float64.

Two thin factors learn the matrix from the entries that are seen, a fixed draw of them. The loss is
the squared error of those over their squared size; `unseen_error` is the root of the same ratio
over the others. A run has arrived when that is below 1%: only the right matrix fills the gaps.
There is no "paper" scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build both factors, the matrix, and which of its entries are seen."""
    from torch import Tensor, nn

    from hvadam_bench.models.factors import Factors
    from hvadam_bench.problems.made_functions import low_rank_matrix, seen_entries
    from hvadam_bench.tasks._full_batch import FullBatchProblem

    size, rank = settings["size"], settings["rank"]
    matrix = low_rank_matrix(size, rank, settings["condition"])
    seen = seen_entries(size, settings["seen"])

    def error(factors: nn.Module, among: Tensor) -> Tensor:
        return ((factors() - matrix) * among).square().sum() / (matrix * among).square().sum()

    def measure(factors: nn.Module) -> dict[str, float]:
        unseen = error(factors, ~seen).sqrt().item()
        return {"unseen_error": unseen, "arrived": float(unseen < ARRIVED)}

    return FullBatchProblem(
        lambda: Factors(size, size, rank),
        lambda factors: error(factors, seen),
        int(seen.sum()),
        settings,
        seed,
        measure,
    )


ARRIVED = 0.01
_LAPTOP = {
    **{"size": 160, "rank": 10, "condition": 1000.0, "seen": 0.3},
    **{"steps": 6000, "warmup": 0.02},
}

TASK = Task(
    name="matrix_completion",
    title="Completion of an ill-conditioned matrix",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={
        "smoke": {**_LAPTOP, "size": 12, "rank": 2, "condition": 5.0, "seen": 0.7, "steps": 60},
        "laptop": _LAPTOP,
    },
    evaluations=30,
    smallest=1.25,
)
