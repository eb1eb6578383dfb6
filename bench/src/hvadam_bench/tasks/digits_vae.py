"""A small variational autoencoder of scikit-learn's digits, in mini-batches.

Chosen to choose a step on, with the other tasks of `step_rule`; there is no "paper" scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the autoencoder and the digits."""
    from hvadam_bench.problems.vae import VAEProblem

    return VAEProblem(settings, seed)


_LAPTOP = {"hidden": 64, "code": 6, "batch_size": 32, "epochs": 30, "warmup": 0.05}

TASK = Task(
    name="digits_vae",
    title="Variational autoencoder of digits",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={
        "smoke": {**_LAPTOP, "hidden": 16, "code": 2, "batch_size": 64, "epochs": 2},
        "laptop": _LAPTOP,
    },
    evaluations=5,
)
