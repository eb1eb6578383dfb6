"""Language models of words and characters, and translation.

The paper's tasks are AWD-LSTM on the Penn Treebank and the transformer on IWSLT14. Where no paper
has one of the others, "paper" scale is only a larger network and all the text. Python's own help,
"pydoc", needs no download; it grows with Python's versions: compare runs under the same one.
"""

from __future__ import annotations

from typing import Any

from hvadam_bench.tasks._spec import Settings, Task, family, scales

_PTB_FROM = (
    "They are test perplexities after the last of 200 epochs, where ours are those of the best "
    "weights: from the curves of the re-run (Buvanesh & Panwar, 2021) that the paper took its "
    "baselines from, AdaBelief's from its own authors'."
)


_task = family(__name__)
_WINDOWS = "windows.WindowProblem"


def _ptb(layers: int, published: dict[str, float], note: str = "") -> Task:
    """Return the task of an AWD-LSTM with so many layers on the Penn Treebank.

    Published are test perplexities after the last of 200 epochs.
    """
    return _task(
        f"ptb_lstm{layers}",
        f"AWD-LSTM of {layers} layer{'s' if layers > 1 else ''} on the Penn Treebank",
        "columns.PennTreebankProblem",
        source="LSTM figures and ablation table" if layers == 1 else "LSTM figures",
        metric="perplexity",
        scales=scales(
            {
                **{"data": "ptb", "tokens": 100_000, "evaluated": 20_000, "vocabulary": 2000},
                # Dropped words, inputs, between layers, outputs, recurrent weights; a few epochs of
                # little text want less.
                **{"width": 64, "hidden": 128, "dropouts": [0.0, 0.1, 0.1, 0.1, 0.1]},
                **{"columns": 20, "evaluation_columns": 20, "bptt": 35},
                **{"epochs": 6, "milestones": [4, 5], "ar": 2.0, "tar": 1.0},
                **{"weight_decay": 1.2e-6, "max_grad_norm": 0.25, "layers": layers},
            },
            smoke={
                **{"data": "synthetic", "tokens": 3000, "evaluated": 500, "vocabulary": None},
                **{"width": 16, "hidden": 16, "columns": 10, "evaluation_columns": 5, "bptt": 20},
            },
            paper={
                **{"tokens": None, "evaluated": None, "vocabulary": None},
                **{"width": 400, "hidden": 1150, "dropouts": [0.1, 0.4, 0.25, 0.4, 0.5]},
                **{"evaluation_columns": 1, "bptt": 70, "epochs": 200, "milestones": [100, 145]},
            },
        ),
        data=("ptb",),
        protocols=("standard", "inherited"),
        published=published,
        published_from=f"{_PTB_FROM} {note}".strip(),
    )


def _character_lstm(name: str, data: str, title: str) -> Task:
    """Return the task of an LSTM over the characters of a text."""
    return _task(
        name,
        f"Character LSTM on {title}",
        _WINDOWS,
        "lstm",
        metric="bits_per_character",
        scales=scales(
            {
                **{"data": data, "tokens": 300_000, "evaluated": 20_000},
                **{"width": 32, "hidden": 128, "layers": 1, "length": 64, "batch_size": 32},
                **{"epochs": 6, "warmup": 0.0, "max_grad_norm": 1.0, "weight_decay": 0.0},
            },
            smoke={
                **{"data": "pydoc", "tokens": 6000, "evaluated": 1000},
                **{"width": 8, "hidden": 16, "length": 20, "batch_size": 10, "epochs": 2},
            },
            paper={
                **{"tokens": None, "evaluated": None, "width": 128, "hidden": 512, "layers": 2},
                **{"length": 128, "epochs": 20},
            },
        ),
        data=(data,),
    )


def _small_pydoc(name: str, network: str, title: str, **sizes: Settings) -> Task:
    """Return the task of a small network on a few hundred small batches of Python's own help.

    It was made to compare candidates for a step (decision 32).
    """
    return _task(
        name,
        f"{title} on Python's help texts",
        _WINDOWS,
        network,
        metric="loss",
        scales=scales(
            {
                **{"tokens": 60_000, "evaluated": 6_000, "length": 32, "epochs": 2},
                **{"warmup": 0.05, "max_grad_norm": None, "weight_decay": 0.0},
                **sizes["laptop"],
            },
            smoke={"tokens": 4000, "evaluated": 500, **sizes["smoke"]},
        ),
        data=("pydoc",),
        evaluations=5,
    )


def _translation(name: str, title: str, metric: str, paper: Settings, **about: Any) -> Task:
    """Return the task of a transformer that translates from German to English."""
    return _task(
        name,
        f"{title} German-English",
        "translation.TranslationProblem",
        metric=metric,
        scales=scales(
            {
                **{"data": "multi30k", "train_pairs": 6000, "evaluated_pairs": 200},
                **{"subwords": 1000, "width": 64, "inner": 128, "heads": 4, "layers": 2},
                **{"dropout": 0.1, "smoothing": 0.1, "batch_tokens": 1000, "epochs": 4},
                **{"warmup": 100, "weight_decay": 1e-4, "beam": 1},
                # Tokens that a translation may have over the longest sentence of its batch.
                "longer": 5,
                **{"scored": 50, "average": 1},
            },
            smoke={
                **{"data": "synthetic", "train_pairs": 300, "evaluated_pairs": 20},
                **{"subwords": None, "width": 16, "inner": 32, "heads": 2, "layers": 1},
                **{"batch_tokens": 200, "warmup": 10, "scored": 10},
            },
            paper={
                **{"train_pairs": None, "evaluated_pairs": None, "batch_tokens": 4096},
                **{"beam": 5, "longer": 50, "scored": None, **paper},
            },
        ),
        **about,
    )


TASKS = [
    _ptb(
        1,
        {
            **{"hvadam": 83.31, "hvadam2": 83.42, "hvadam1": 84.54, "hvadam0": 85.04},
            **{"adabelief": 84.21, "adam": 84.46, "sgd": 85.20, "adabound": 84.90, "msvag": 84.35},
            **{"yogi": 86.92, "adamw": 88.25, "radam": 88.83, "fromage": 85.03},
        },
        note="HVAdam's and its levels' are the paper's Table 4, where Adam is level 0.",
    ),
    _ptb(
        2,
        {
            **{"adabelief": 66.29, "adam": 67.07, "sgd": 67.13, "adabound": 67.57, "msvag": 68.82},
            **{"yogi": 71.66, "adamw": 73.82, "radam": 74.06, "fromage": 71.75},
        },
    ),
    _ptb(
        3,
        {
            **{"adabelief": 61.25, "adam": 64.85, "sgd": 63.54, "adabound": 63.34, "msvag": 65.12},
            **{"yogi": 67.85, "adamw": 70.56, "radam": 70.25, "fromage": 67.50},
        },
    ),
    # A run reads nine tenths of the text, so there is no dropout. The curve is of 4,000 of the
    # 73,760 validation words, in twenty stretches, but for its last point, by which rates are
    # chosen: that is of all of them.
    _task(
        "ptb_lstm128",
        "Tied LSTM of 128 units on the Penn Treebank, 10,000 words",
        "columns.ColumnProblem",
        metric="perplexity",
        scales=scales(
            {
                **{"data": "ptb", "curve_tokens": 4_000, "width": 128},
                **{"columns": 20, "bptt": 35, "steps": 1200, "warmup": 0.05},
                **{"max_grad_norm": 1.0, "weight_decay": 0.01},
            },
            smoke={
                **{"data": "synthetic", "curve_tokens": 500, "width": 16},
                **{"columns": 10, "bptt": 20, "steps": 60},
            },
        ),
        data=("ptb",),
        evaluations=30,
    ),
    _task(
        "wikitext2_transformer",
        "Small transformer on WikiText-2",
        _WINDOWS,
        "transformer",
        metric="perplexity",
        scales=scales(
            {
                **{"data": "wikitext2", "tokens": 200_000, "evaluated": 20_000},
                **{"vocabulary": 2000, "width": 64, "inner": 256, "heads": 4, "layers": 2},
                **{"dropout": 0.1, "length": 64, "batch_size": 16, "epochs": 4},
                **{"warmup": 0.1, "max_grad_norm": 1.0},
                # What is usual for decoupled decay, 0.01, holds those back whose decay is part of
                # the gradient.
                "weight_decay": 0.0,
            },
            smoke={
                **{"data": "synthetic", "tokens": 4000, "evaluated": 500, "vocabulary": 30},
                **{"width": 16, "inner": 32, "layers": 1, "length": 20, "batch_size": 10},
                "epochs": 2,
            },
            paper={
                **{"tokens": None, "evaluated": None, "vocabulary": None, "width": 256},
                **{"inner": 1024, "layers": 4, "dropout": 0.2, "length": 128},
                **{"batch_size": 32, "epochs": 10},
            },
        ),
        data=("wikitext2",),
    ),
    _character_lstm("shakespeare_lstm", "tinyshakespeare", "tiny Shakespeare"),
    _character_lstm("pydoc_lstm", "pydoc", "Python's help texts"),
    _small_pydoc(
        "pydoc_gru",
        "gru",
        "Small character GRU",
        laptop={"width": 24, "hidden": 48, "batch_size": 12},
        smoke={"width": 8, "hidden": 16, "length": 20},
    ),
    _small_pydoc(
        "pydoc_transformer",
        "transformer",
        "Tiny character transformer",
        laptop={"width": 32, "inner": 64, "heads": 2, "layers": 2, "batch_size": 10},
        smoke={"width": 16, "inner": 32, "layers": 1},
    ),
    # Windows of the first 90% of the text train it, the next 5% (55,770 characters) are for
    # validation, the last 5% for the test.
    _task(
        "shakespeare_gpt",
        "Character GPT of 3 layers on tiny Shakespeare",
        _WINDOWS,
        "transformer",
        metric="bits_per_character",
        scales=scales(
            {
                **{"data": "tinyshakespeare", "tokens": None, "evaluated": None},
                **{"width": 96, "heads": 4, "layers": 3, "dropout": 0.0},
                **{"length": 64, "batch_size": 32, "steps": 1800, "warmup": 0.05},
                **{"max_grad_norm": 1.0, "weight_decay": 0.1},
            },
            smoke={
                **{"data": "pydoc", "tokens": 6000, "evaluated": 1000, "width": 16, "heads": 2},
                **{"layers": 1, "length": 20, "batch_size": 10, "steps": 60},
            },
        ),
        data=("tinyshakespeare",),
        evaluations=30,
    ),
    # With "batch" at 0 every step sees all the windows and there is no noise; at 1 it sees one.
    _task(
        "shakespeare_windows",
        "Character LSTM on 256 windows of Shakespeare",
        "windows.FewWindowsProblem",
        metric="loss",
        scales=scales(
            {
                **{"data": "tinyshakespeare", "windows": 256, "length": 32, "batch": 0},
                **{"width": 24, "hidden": 64, "steps": 2000, "warmup": 0.05},
            },
            smoke={
                **{"data": "pydoc", "windows": 32, "length": 16, "batch": 8},
                **{"width": 8, "hidden": 16, "steps": 60},
            },
        ),
        data=("tinyshakespeare",),
        evaluations=30,
    ),
    # The paper lists it among its experiments and gives no number. "paper" scale is fairseq's
    # transformer_iwslt_de_en, as trained for AdaBelief, whose authors have a BLEU of 35.02 for Adam
    # and of 35.17 for AdaBelief.
    _translation(
        "iwslt14_transformer",
        "Transformer on IWSLT14",
        "bleu",
        {
            **{"data": "iwslt14", "subwords": None, "width": 512, "inner": 1024, "layers": 6},
            **{"dropout": 0.3, "epochs": 50, "warmup": 4000, "average": 5},
        },
        source="named in the paper, without a result",
        goal="max",
        data=("iwslt14", "multi30k"),
    ),
    # Judged by its perplexity, which tells contenders apart sooner: BLEU of a few dozen sentences
    # is a rough measure.
    _translation(
        "multi30k_transformer",
        "Small transformer on Multi30k",
        "perplexity",
        {"subwords": 8000, "width": 256, "inner": 512, "layers": 3, "epochs": 20, "warmup": 1000},
        data=("multi30k",),
    ),
]
