"""A first look: HVAdam beside Adam on a smooth problem and on one with mini-batches."""

from __future__ import annotations

from typing import Any

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Contest, Entry

# What is changed of the laptop's scale, so that a run takes about a second on one core, and where
# everyone's search for the learning rate begins.
TASKS: dict[str, tuple[dict[str, Any], float]] = {
    "digits_autoencoder": ({}, 3e-2),
    "digits_cnn": ({"epochs": 6}, 3e-3),
}

RECIPES = (
    Recipe(
        name="demo",
        reproduces="ours: a first look at a smooth problem and one with mini-batches",
        studies=[
            Contest(
                task,
                [Entry(name, {"lr": lr}) for name in ("adam", "hvadam")],
                settings=own,
                trials=3,
                seeds=10,
            )
            for task, (own, lr) in TASKS.items()
        ],
    ),
)
