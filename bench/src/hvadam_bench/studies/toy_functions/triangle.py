"""Fig. 3 of the paper by numbers: how two gradients that take turns give the hidden vector."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hvadam.core.hyperparams import Hyperparams
from hvadam.core.reference import ScopeState, Slot, step

Point = tuple[float, float]


class Step(NamedTuple):
    """One step on the function of Fig. 3."""

    gradient: Point
    average: Point  # m̂
    hidden: Point  # v


def steps(count: int = 5) -> list[Step]:
    """Return gradient, average and hidden vector of the first steps, by the reference."""
    slot, scope = Slot(np.zeros(2), Hyperparams(lr=0.0)), ScopeState()
    rows: list[Step] = []
    for t in range(1, count + 1):
        gradient = np.array([5.0, -3.0] if t % 2 else [-3.0, 5.0])
        step(scope, [slot], [gradient])
        average = slot.m / (1 - 0.9**t)
        rows.append(Step(*((float(x), float(y)) for x, y in (gradient, average, slot.v))))
    return rows
