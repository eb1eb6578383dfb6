"""A character LSTM that learns 256 windows of Shakespeare by heart, in batches of any size.

With "batch" at 0 every step sees all the windows and there is no noise; at 1 it sees one of 256.
There is no "paper" scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the LSTM and its windows of text."""
    from hvadam_bench.models.char_lstm import CharLSTM
    from hvadam_bench.problems.corpora import corpus
    from hvadam_bench.problems.few_windows import FewWindowsProblem

    text = corpus(settings["data"], None, None, None)
    sizes = settings["width"], settings["hidden"], 1
    return FewWindowsProblem(lambda vocabulary: CharLSTM(vocabulary, *sizes), text, settings, seed)


_LAPTOP = {
    **{"data": "tinyshakespeare", "windows": 256, "length": 32, "batch": 0},
    **{"width": 24, "hidden": 64, "steps": 2000, "warmup": 0.05},
}

TASK = Task(
    name="shakespeare_windows",
    title="Character LSTM on 256 windows of Shakespeare",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={
        "smoke": {
            **_LAPTOP,
            **{"data": "pydoc", "windows": 32, "length": 16, "batch": 8},
            **{"width": 8, "hidden": 16, "steps": 60},
        },
        "laptop": _LAPTOP,
    },
    data=("tinyshakespeare",),
    evaluations=30,
)
