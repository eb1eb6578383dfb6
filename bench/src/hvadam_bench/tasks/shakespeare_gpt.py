"""A character GPT of three layers, 96 wide, on tiny Shakespeare.

Windows of the first 90% of the text train it, the next 5% (55,770 characters) are for validation,
the last 5% for the test. Half as many "steps" are the same training at half length: the schedule
follows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the GPT and its windows of text."""
    from hvadam_bench.models.transformer import TransformerLM
    from hvadam_bench.problems.corpora import corpus
    from hvadam_bench.problems.windows import WindowProblem

    text = corpus(settings["data"], settings["tokens"], settings["evaluated"], None)
    width, heads, layers = (settings[name] for name in ("width", "heads", "layers"))
    return WindowProblem(
        lambda vocabulary: TransformerLM(
            vocabulary, width, 4 * width, heads, layers, settings["dropout"]
        ),
        text,
        settings,
        seed,
        "bits_per_character",
    )


_LAPTOP = {
    **{"data": "tinyshakespeare", "tokens": None, "evaluated": None},
    **{"width": 96, "heads": 4, "layers": 3, "dropout": 0.0},
    **{"length": 64, "batch_size": 32, "steps": 1800, "warmup": 0.05},
    **{"max_grad_norm": 1.0, "weight_decay": 0.1},
}

TASK = Task(
    name="shakespeare_gpt",
    title="Character GPT of 3 layers on tiny Shakespeare",
    source="extra",
    metric="bits_per_character",
    goal="min",
    build=build,
    scales={
        "smoke": {
            **_LAPTOP,
            **{"data": "pydoc", "tokens": 6000, "evaluated": 1000, "width": 16, "heads": 2},
            **{"layers": 1, "length": 20, "batch_size": 10, "steps": 60},
        },
        "laptop": _LAPTOP,
    },
    data=("tinyshakespeare",),
    evaluations=30,
)
