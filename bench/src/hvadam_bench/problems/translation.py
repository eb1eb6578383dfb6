"""German to English by a transformer: what the translation tasks share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem

# Fairseq's transformer_iwslt_de_en, as trained for AdaBelief.
PAPER = {
    "data": "iwslt14",
    "train_pairs": None,
    "evaluated_pairs": None,
    "subwords": None,
    "width": 512,
    "inner": 1024,
    "heads": 4,
    "layers": 6,
    "dropout": 0.3,
    "smoothing": 0.1,
    "batch_tokens": 4096,
    "epochs": 50,
    "warmup": 4000,
    "weight_decay": 1e-4,
    "beam": 5,
    "longer": 50,  # tokens that a translation may have over the longest sentence of its batch
    "scored": None,
    "average": 5,
}
LAPTOP = {
    **PAPER,
    "data": "multi30k",
    "train_pairs": 6000,
    "evaluated_pairs": 200,
    "subwords": 1000,
    "width": 64,
    "inner": 128,
    "layers": 2,
    "dropout": 0.1,
    "batch_tokens": 1000,
    "epochs": 4,
    "warmup": 100,
    "beam": 1,
    "longer": 5,
    "scored": 50,
    "average": 1,
}
SMOKE = {
    **LAPTOP,
    "data": "synthetic",
    "train_pairs": 300,
    "evaluated_pairs": 20,
    "subwords": None,
    "width": 16,
    "inner": 32,
    "heads": 2,
    "layers": 1,
    "batch_tokens": 200,
    "warmup": 10,
    "scored": 10,
}


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the transformer and its sentence pairs."""
    from hvadam_bench.problems.sentences import TranslationProblem

    return TranslationProblem(settings, seed, protocol)
