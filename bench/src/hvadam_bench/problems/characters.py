"""An LSTM over characters: what the tasks on two texts share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task

_LAPTOP = {
    "tokens": 300_000,
    "evaluated": 20_000,
    "width": 32,
    "hidden": 128,
    "layers": 1,
    "length": 64,
    "batch_size": 32,
    "epochs": 6,
    "warmup": 0.0,
    "max_grad_norm": 1.0,
    "weight_decay": 0.0,
}
_PAPER = {
    **_LAPTOP,
    "tokens": None,
    "evaluated": None,
    "width": 128,
    "hidden": 512,
    "layers": 2,
    "length": 128,
    "epochs": 20,
}
_SMOKE = {
    **_LAPTOP,
    "tokens": 6000,
    "evaluated": 1000,
    "width": 8,
    "hidden": 16,
    "length": 20,
    "batch_size": 10,
    "epochs": 2,
}


def task(name: str, data: str, title: str) -> Task:
    """Return the task on one text; its "paper" scale is only a larger network and all the text."""
    scales = {"smoke": _SMOKE, "laptop": _LAPTOP, "paper": _PAPER}
    return Task(
        name=name,
        title=title,
        source="extra",
        metric="bits_per_character",
        goal="min",
        build=_build,
        scales={
            scale: {"data": "pydoc" if scale == "smoke" else data, **settings}
            for scale, settings in scales.items()
        },
        data=(data,),
    )


def _build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    from hvadam_bench.models.char_lstm import CharLSTM
    from hvadam_bench.problems.corpora import corpus
    from hvadam_bench.problems.windows import WindowProblem

    text = corpus(settings["data"], settings["tokens"], settings["evaluated"], None)
    sizes = settings["width"], settings["hidden"], settings["layers"]
    return WindowProblem(
        lambda vocabulary: CharLSTM(vocabulary, *sizes), text, settings, seed, "bits_per_character"
    )
