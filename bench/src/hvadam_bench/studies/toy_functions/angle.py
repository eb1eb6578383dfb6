"""The angle study: f2 as its valley turns from one axis to the diagonal.

The starts turn with the valley, so that only its angle to the axes changes. A method that treats
all directions alike draws a level line; what looks at one coordinate at a time does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from hvadam_bench.studies.toy_functions.functions import Fan, Problem
from hvadam_bench.studies.toy_functions.heats import Heat, HeatResult
from hvadam_bench.studies.toy_functions.result import AngleResult, Regime, Turn, TurnResult
from hvadam_bench.studies.toy_functions.summary import count_diverged, quartiles

ANGLES = (0.0, 1.0, 5.0, 10.0, 20.0, 30.0, 45.0)


def plan(contenders: Sequence[str], dimension: int, steps: int) -> list[Heat]:
    """Plan a heat for every contender, at all angles at once."""
    fan = Fan(tuple(Problem.of("f2", angle, dimension) for angle in ANGLES))
    return [Heat(fan, name, "sample", steps, steps) for name in contenders]


def summarize(results: Sequence[HeatResult]) -> Turn:
    """Return what each contender reached at each angle."""
    by_name: dict[str, list[HeatResult]] = {}
    for result in results:
        by_name.setdefault(result.contender, []).append(result)
    return {
        name: TurnResult(
            common=tuple(_at_angle(one, "common") for one in own),
            tuned=tuple(_at_angle(one, "tuned") for one in own),
        )
        for name, own in by_name.items()
    }


def _at_angle(result: HeatResult, regime: Regime) -> AngleResult:
    outcome = result.outcomes[regime]
    return AngleResult(
        angle=result.problem.angle,
        lr=result.lrs[regime],
        loss=quartiles(outcome.loss),
        diverged=count_diverged(outcome),
    )
