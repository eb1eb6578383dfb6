"""What a recipe is: the contests or commands behind one published table or figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hvadam_bench.sweeping.costs import Costs
from hvadam_bench.sweeping.search import Contest


@dataclass(frozen=True)
class Recipe:
    """How to make a result again.

    Attributes:
        name: The name that `hvadam sweep` takes.
        reproduces: What it makes, with its number in the paper.
        studies: What to sweep.
        commands: What to type instead, where nothing is trained.
    """

    name: str
    reproduces: str
    studies: Sequence[Contest] = ()
    commands: Sequence[str] = ()

    @property
    def tasks(self) -> list[str]:
        """Return the tasks, each once."""
        return list(dict.fromkeys(study.task for study in self.studies))

    @property
    def runs(self) -> int:
        """Return how many runs it takes, if no grid grows."""
        return sum(arm.runs for study in self.studies for arm in study.arms())

    def seconds(self, costs: Costs) -> float:
        """Return how long its runs take one after the other."""
        return math.fsum(
            costs.of(config)
            for study in self.studies
            for arm in study.arms()
            for config in (*arm.tuning(arm.trials), *arm.judging({}))
        )
