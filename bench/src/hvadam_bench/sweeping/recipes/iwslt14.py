"""A transformer on IWSLT14, which the paper lists among its experiments and gives no result of."""

from __future__ import annotations

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Contest, Entry

# As in the fairseq scripts of AdaBelief's authors, where "adam" decays as AdamW does; RAdam has the
# same rate.
ENTRIES = (
    Entry("adam", {"lr": 5e-4, "betas": (0.9, 0.98)}),
    Entry("adamw", {"lr": 5e-4, "betas": (0.9, 0.98)}),
    Entry("radam", {"lr": 5e-4}),
    Entry(
        "adabelief",
        {"lr": 5e-4, "eps": 1e-16, "weight_decay_mode": "decoupled", "rectify": True},
    ),
    Entry("hvadam", {"lr": 5e-4}),
)

RECIPES = (
    Recipe(
        name="iwslt14",
        reproduces="a transformer on IWSLT14 German-English, which the paper lists without result",
        studies=[Contest("iwslt14_transformer", ENTRIES, scale="paper", seeds=3)],
    ),
)
