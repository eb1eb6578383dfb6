"""The angle study: f2 as its valley turns from one axis to the diagonal.

The starts turn with the valley, so that only its angle to the axes changes. A method that treats
all directions alike draws a level line; what looks at one coordinate at a time does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hvadam.bench.valley.functions import Fan, Problem
from hvadam.bench.valley.study import REGIMES, Heat, Result
from hvadam.bench.valley.summary import quartiles

ANGLES = (0.0, 1.0, 5.0, 10.0, 20.0, 30.0, 45.0)


def plan(contenders: Sequence[str], dimension: int, steps: int) -> list[Heat]:
    """Every contender, at all angles at once."""
    fan = Fan(tuple(Problem.of("f2", angle, dimension) for angle in ANGLES))
    return [Heat(fan, name, "sample", steps, steps) for name in contenders]


def summarize(results: Sequence[Result]) -> dict[str, Any]:
    """Contender -> regime -> for each angle the learning rate, the quartiles, the diverged."""
    summary: dict[str, Any] = {}
    for result in results:
        own = summary.setdefault(result.contender, {regime: [] for regime in REGIMES})
        for regime in REGIMES:
            outcome = result.outcomes[regime]
            own[regime].append(
                {
                    "angle": result.problem.angle,
                    "lr": result.lrs[regime],
                    "loss": quartiles(outcome.loss),
                    "diverged": int((outcome.diverged >= 0).sum()),
                }
            )
    return summary
