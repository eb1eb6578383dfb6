"""An LSTM of 128 units on the Penn Treebank with all of its 10,000 words.

A run reads nine tenths of the text, so there is no dropout. The curve is of 4,000 of the 73,760
validation words, in twenty stretches, but for its last point, by which rates are chosen: that is of
all of them. Half as many "steps" are the same training at half length: the schedule follows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the LSTM and its columns of text."""
    from hvadam_bench.problems.columns import ColumnProblem
    from hvadam_bench.problems.corpora import corpus

    return ColumnProblem(corpus(settings["data"], None, None, None), settings, seed)


_LAPTOP = {
    **{"data": "ptb", "curve_tokens": 4_000, "width": 128},
    **{"columns": 20, "bptt": 35, "steps": 1200, "warmup": 0.05},
    **{"max_grad_norm": 1.0, "weight_decay": 0.01},
}

TASK = Task(
    name="ptb_lstm128",
    title="Tied LSTM of 128 units on the Penn Treebank, 10,000 words",
    source="extra",
    metric="perplexity",
    goal="min",
    build=build,
    scales={
        "smoke": {
            **_LAPTOP,
            **{"data": "synthetic", "curve_tokens": 500, "width": 16},
            **{"columns": 10, "bptt": 20, "steps": 60},
        },
        "laptop": _LAPTOP,
    },
    data=("ptb",),
    evaluations=30,
)
