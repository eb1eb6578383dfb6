"""The theorems of appendices B, C and D, measured."""

from __future__ import annotations

from hvadam_bench.sweeping.recipes._spec import Recipe

RECIPES = (
    Recipe(
        name="theorems",
        reproduces="Theorems of appendices B to D: the hidden vector, regret, convergence",
        commands=["hvadam theory"],
    ),
)
