"""The worked example beside its table: Figure 3."""

from __future__ import annotations

from hvadam_bench.sweeping.recipes._spec import Recipe

RECIPES = (
    Recipe(
        name="worked_example",
        reproduces="Figure 3: two steps find the trend of 4|x - y| + |x + y|",
        commands=["hvadam valley --functions fig3"],
    ),
)
