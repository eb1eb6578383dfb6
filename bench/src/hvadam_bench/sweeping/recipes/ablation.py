"""What each part of the method adds, on the 1-layer LSTM: Table 4."""

from __future__ import annotations

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Contest, Entry

LEVELS = ("hvadam0", "hvadam1", "hvadam2", "hvadam")
DECAY = {"weight_decay_mode": "coupled"}
RATES = (1e-2, 1e-3, 1e-4)
WHAT = "Table 4: ablation, from Adam (level 0) to the full method, 1-layer LSTM"

RECIPES = (
    Recipe(
        name="ablation",
        reproduces=WHAT,
        studies=[
            Contest(
                task="ptb_lstm1",
                entries=[Entry(level, DECAY) for level in LEVELS],
                scale="paper",
                seeds=3,
                reference="hvadam0",
            )
        ],
    ),
    Recipe(
        name="ablation_published",
        reproduces=f"{WHAT}, as published",
        # The search of appendix F, for every level: the paper does not say which ones had it.
        studies=[
            Contest(
                task="ptb_lstm1",
                entries=[Entry(level, DECAY, rates=RATES) for level in LEVELS],
                scale="paper",
                protocol="inherited",
                budget="published",
                seeds=1,
                reference="hvadam0",
            )
        ],
    ),
)
