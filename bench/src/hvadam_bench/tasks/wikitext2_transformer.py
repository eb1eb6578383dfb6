"""A small transformer on the words of WikiText-2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task

_LAPTOP = {
    "data": "wikitext2",
    "tokens": 200_000,
    "evaluated": 20_000,
    "vocabulary": 2000,
    "width": 64,
    "inner": 256,
    "heads": 4,
    "layers": 2,
    "dropout": 0.1,
    "length": 64,
    "batch_size": 16,
    "epochs": 4,
    "warmup": 0.1,
    "max_grad_norm": 1.0,
    # What is usual for decoupled decay, 0.01, holds those back whose decay is part of the gradient.
    "weight_decay": 0.0,
}
# No paper has it: "paper" is only a larger network, all the text and all its words.
_PAPER = {
    **_LAPTOP,
    "tokens": None,
    "evaluated": None,
    "vocabulary": None,
    "width": 256,
    "inner": 1024,
    "layers": 4,
    "dropout": 0.2,
    "length": 128,
    "batch_size": 32,
    "epochs": 10,
}
_SMOKE = {
    **_LAPTOP,
    "data": "synthetic",
    "tokens": 4000,
    "evaluated": 500,
    "vocabulary": 30,
    "width": 16,
    "inner": 32,
    "layers": 1,
    "length": 20,
    "batch_size": 10,
    "epochs": 2,
}


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the transformer and its windows of text."""
    from hvadam_bench.models.transformer import TransformerLM
    from hvadam_bench.problems.corpora import corpus
    from hvadam_bench.problems.windows import WindowProblem

    text = corpus(
        settings["data"], settings["tokens"], settings["evaluated"], settings["vocabulary"]
    )
    sizes = (settings[name] for name in ("width", "inner", "heads", "layers", "dropout"))
    width, inner, heads, layers, share = sizes
    return WindowProblem(
        lambda vocabulary: TransformerLM(vocabulary, width, inner, heads, layers, share),
        text,
        settings,
        seed,
        "perplexity",
    )


TASK = Task(
    name="wikitext2_transformer",
    title="Small transformer on WikiText-2",
    source="extra",
    metric="perplexity",
    goal="min",
    build=build,
    scales={"smoke": _SMOKE, "laptop": _LAPTOP, "paper": _PAPER},
    data=("wikitext2",),
)
