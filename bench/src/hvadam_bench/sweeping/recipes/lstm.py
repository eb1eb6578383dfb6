"""LSTMs of one, two and three layers on the Penn Treebank: Figure 5."""

from __future__ import annotations

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Contest, Entry

WHAT = "Figure 5: perplexity of 1, 2 and 3-layer LSTMs on the Penn Treebank"
HVADAM = {"gamma": 0.5, "weight_decay_mode": "coupled"}


def baselines(layers: int) -> list[Entry]:
    """Return the baselines of the re-run that the paper took its numbers from.

    They are those of AdaBelief's code, except that AdamW and RAdam have 1e-3 at every depth. There
    SGD turns into averaged SGD when it stalls, but what is evaluated is not the average.
    """
    one = layers == 1
    adam = {"lr": 1e-3 if one else 1e-2}
    return [
        Entry("sgd", {"lr": 30.0, "momentum": 0.0}),
        Entry("adam", adam),
        Entry("adamw", {"lr": 1e-3}),
        Entry("radam", {"lr": 1e-3}),
        Entry("msvag", {"lr": 30.0}),
        Entry("yogi", {"lr": 1e-2, "eps": 1e-3}),
        Entry("adabound", {"lr": 1e-2, "final_lr": 30.0}),
        Entry("fromage", {"lr": 1e-2}),
        Entry(
            "adabelief",
            {**adam, "eps": 1e-16 if one else 1e-12, "weight_decay_mode": "coupled"},
        ),
    ]


def _tuned(layers: int) -> Contest:
    entries = [*baselines(layers), Entry("hvadam", HVADAM)]
    return Contest(f"ptb_lstm{layers}", entries, scale="paper", seeds=3)


def _published(layers: int) -> Contest:
    entries = [*baselines(layers), Entry("hvadam", HVADAM, rates=(1e-2, 1e-3, 1e-4))]
    task = f"ptb_lstm{layers}"
    return Contest(task, entries, "paper", "inherited", budget="published", seeds=1)


RECIPES = (
    Recipe("lstm", WHAT, [_tuned(layers) for layers in (1, 2, 3)]),
    Recipe("lstm_published", f"{WHAT}, as published", [_published(n) for n in (1, 2, 3)]),
)
