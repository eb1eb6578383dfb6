"""A first look: three small tasks that need no data files, in minutes."""

from __future__ import annotations

from typing import Any

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Entry, Study

# Without a decay of its own AdamW would be Adam here, for the tasks have none.
ENTRIES = (
    *(Entry("sgd"), Entry("adam"), Entry("adamw", {"weight_decay": 0.01})),
    *(Entry("adabelief"), Entry("lion"), Entry("hvadam")),
)
# Cut down until a run takes one to three seconds on one core.
TASKS: dict[str, dict[str, Any]] = {
    "digits_mlp": {"epochs": 15},
    "digits_cnn": {"epochs": 8},
    "pydoc_lstm": {
        **{"tokens": 60_000, "evaluated": 6_000, "width": 16, "hidden": 64},
        **{"length": 32, "batch_size": 16, "epochs": 2},
    },
}

RECIPES = (
    Recipe(
        name="demo",
        reproduces="ours: a first look on three small tasks without data files",
        studies=[
            Study(task, ENTRIES, settings=own, trials=5, seeds=3) for task, own in TASKS.items()
        ],
    ),
)
