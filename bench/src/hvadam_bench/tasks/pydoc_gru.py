"""A GRU over the characters of Python's own help, a few hundred small batches.

Chosen to choose a step on, with the other tasks of `step_rule`; there is no "paper" scale. The text
grows with Python's versions: compare runs under the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the GRU and its windows of text."""
    from hvadam_bench.models.char_gru import CharGRU
    from hvadam_bench.problems.corpora import corpus
    from hvadam_bench.problems.windows import WindowProblem

    text = corpus("pydoc", settings["tokens"], settings["evaluated"], None)
    sizes = settings["width"], settings["hidden"]
    return WindowProblem(
        lambda vocabulary: CharGRU(vocabulary, *sizes), text, settings, seed, "bits_per_character"
    )


_LAPTOP = {
    **{"tokens": 60_000, "evaluated": 6_000, "width": 24, "hidden": 48},
    **{"length": 32, "batch_size": 12, "epochs": 2, "warmup": 0.05},
    **{"max_grad_norm": None, "weight_decay": 0.0},
}

TASK = Task(
    name="pydoc_gru",
    title="Small character GRU on Python's help texts",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={
        "smoke": {
            **_LAPTOP,
            **{"tokens": 4000, "evaluated": 500, "width": 8, "hidden": 16, "length": 20},
        },
        "laptop": _LAPTOP,
    },
    data=("pydoc",),
    evaluations=5,
)
