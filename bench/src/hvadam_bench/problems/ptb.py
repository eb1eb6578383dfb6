"""AWD-LSTM on the Penn Treebank: what the tasks of one, two and three layers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task

_PAPER = {
    "data": "ptb",
    "tokens": None,
    "evaluated": None,
    "vocabulary": None,
    "width": 400,
    "hidden": 1150,
    # Dropped words, inputs, between layers, outputs, recurrent weights.
    "dropouts": [0.1, 0.4, 0.25, 0.4, 0.5],
    "columns": 20,
    "evaluation_columns": 1,
    "bptt": 70,
    "epochs": 200,
    "milestones": [100, 145],
    "ar": 2.0,
    "tar": 1.0,
    "weight_decay": 1.2e-6,
    "max_grad_norm": 0.25,
}
# A few epochs of little text want less dropout.
_LAPTOP = {
    **_PAPER,
    "tokens": 100_000,
    "evaluated": 20_000,
    "vocabulary": 2000,
    "width": 64,
    "hidden": 128,
    "dropouts": [0.0, 0.1, 0.1, 0.1, 0.1],
    "evaluation_columns": 20,
    "bptt": 35,
    "epochs": 6,
    "milestones": [4, 5],
}
_SMOKE = {
    **_LAPTOP,
    "data": "synthetic",
    "tokens": 3000,
    "evaluated": 500,
    "vocabulary": None,
    "width": 16,
    "hidden": 16,
    "columns": 10,
    "evaluation_columns": 5,
    "bptt": 20,
    "epochs": 6,
    "milestones": [4, 5],
}
_FROM = (
    "They are test perplexities after the last of 200 epochs, where ours are those of the best "
    "weights: from the curves of the re-run (Buvanesh & Panwar, 2021) that the paper took its "
    "baselines from, AdaBelief's from its own authors'."
)


def task(layers: int, published: Mapping[str, float], note: str = "") -> Task:
    """Return the task of a network with so many layers.

    Args:
        layers: How many.
        published: Test perplexities after the last of 200 epochs.
        note: What is to be said of them besides where all of them are from.
    """
    return Task(
        name=f"ptb_lstm{layers}",
        title=f"AWD-LSTM of {layers} layer{'s' if layers > 1 else ''} on the Penn Treebank",
        source="LSTM figures and ablation table" if layers == 1 else "LSTM figures",
        metric="perplexity",
        goal="min",
        build=_build,
        scales={
            name: {**settings, "layers": layers}
            for name, settings in {"smoke": _SMOKE, "laptop": _LAPTOP, "paper": _PAPER}.items()
        },
        data=("ptb",),
        protocols=("standard", "inherited"),
        published=published,
        published_from=f"{_FROM} {note}".strip(),
    )


def _build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    from hvadam_bench.problems.treebank import PennTreebankProblem

    return PennTreebankProblem(settings, seed, protocol)
