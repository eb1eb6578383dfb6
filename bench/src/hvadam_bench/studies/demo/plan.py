"""What the demo runs: HVAdam versus Adam on a smooth problem and on one with mini-batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hvadam_bench.sweeping.recipe import Recipe
from hvadam_bench.sweeping.search import Contest, Entry, narrowed

# What is changed of the laptop's scale, so that a run takes about a second on one core, and where
# everyone's search for the learning rate begins.
TASKS: dict[str, tuple[dict[str, Any], float]] = {
    "digits_autoencoder": ({}, 3e-2),
    "digits_cnn": ({"epochs": 6}, 3e-3),
}
RECIPE = Recipe(
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
)
QUICK = {"epochs": 1}  # instead, where only the code is tried


class Plan(NamedTuple):
    """The contests, and the steps of each path in the valley."""

    contests: Sequence[Contest]
    steps: int


def plan(*, seeds: int | None = None, steps: int = 1500, smoke: bool = False) -> Plan:
    """Return what is run and drawn.

    Args:
        seeds: How many runs each winner gets; 10 if not given.
        steps: How many steps each path in the valley has.
        smoke: Train one network for an epoch only, to see that it works.
    """
    if smoke:
        tried = narrowed(RECIPE.studies, tasks=["digits_cnn"], settings=QUICK, rates=[1e-3])
        return Plan(narrowed(tried, seeds=1), min(steps, 20))
    return Plan(narrowed(RECIPE.studies, seeds=seeds), steps)
