"""A first look: three small tasks that need no data files, in minutes."""

from __future__ import annotations

from hvadam.bench.recipes._spec import Recipe
from hvadam.bench.search import Entry, Study

CONTENDERS = ("sgd", "adam", "adamw", "adabelief", "lion", "hvadam")

RECIPES = (
    Recipe(
        name="demo",
        reproduces="ours: a first look on three small tasks without data files",
        studies=[
            Study(task, [Entry(name) for name in CONTENDERS], trials=5, seeds=3)
            for task in ("digits_mlp", "digits_cnn", "pydoc_lstm")
        ],
    ),
)
