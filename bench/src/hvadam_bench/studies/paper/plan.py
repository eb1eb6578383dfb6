"""Which of the paper's tables are made again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hvadam_bench.registry import instead
from hvadam_bench.studies.paper.tables import RECIPES
from hvadam_bench.sweeping.recipe import Recipe
from hvadam_bench.sweeping.search import narrowed


def plan(
    *, tables: tuple[str, ...] = ("ablation",), seeds: int | None = None, smoke: bool = False
) -> Sequence[Recipe]:
    """Return what is to be trained.

    Args:
        tables: The tables, by the names that `hvadam recipes` lists; commas between them.
        seeds: How many runs each winner gets; as many as the recipe has if not given.
        smoke: Train two contenders on a small task instead, to see that it works.
    """
    known = {one.name: one for one in RECIPES if one.studies}
    if smoke:
        few: dict[str, Any] = {
            "tasks": ["digits_mlp"],
            "contenders": ["adam", "hvadam"],
            "rates": [1e-3],
        }
        tried = narrowed(known["laptop"].studies, **few, seeds=1, scale="smoke")
        return [replace(known["laptop"], studies=tried)]
    for name in tables:
        if name not in known:
            raise ValueError(f"there is no table {name!r}; {instead(name, list(known))}")
    chosen = [known[name] for name in tables]
    return [replace(one, studies=narrowed(one.studies, seeds=seeds)) for one in chosen]
