"""The paths on toy functions: Figures 1 and 2."""

from __future__ import annotations

from hvadam_bench.sweeping.recipes._spec import Recipe

RECIPES = (
    Recipe(
        name="toy",
        reproduces="Figures 1 and 2: paths on f1 to f4, and from hundreds of other starts",
        commands=["hvadam valley --functions f1,f2,f3,f4"],
    ),
)
