"""The paper's three theorems, measured: whether they hold, and what their bounds are worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hvadam._version import __version__
from hvadam_bench.studies._study import Place, Study
from hvadam_bench.studies.theory import hidden_vector, nonconvex, page, plan, regret
from hvadam_bench.studies.theory.plan import Plan
from hvadam_bench.studies.theory.result import HIDDEN_VECTOR, NONCONVEX, REGRET, Theory

DIGITS = 6  # significant ones, which keep the file small


def measure(plan: Plan, place: Place) -> dict[str, Theory]:
    """Measure the three theorems, one after the other."""

    def advance(part: str, weight: float) -> Callable[[float], None]:
        return lambda share: place.on_progress(part, weight * share)

    with np.errstate(over="ignore", invalid="ignore"):
        found = [
            hidden_vector.study(plan.runs, plan.steps, advance(HIDDEN_VECTOR, 0.05)),
            regret.study(plan.rounds, advance(REGRET, 0.45)),
            nonconvex.study(plan.rounds, advance(NONCONVEX, 0.5)),
        ]
    versions = {"hvadam": __version__, "numpy": np.__version__}
    return {"theory": Theory(versions, *map(rounded, found))}


def rounded(value: Any) -> Any:
    """Return arrays and numbers as plain ones of few digits; None for those that are not finite."""
    if isinstance(value, dict):
        return {key: rounded(x) for key, x in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [rounded(x) for x in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


STUDY = Study(
    "theory",
    "Measure the paper's theorems versus their bounds; some minutes.",
    plan.plan,
    measure,
    page.render,
    {"theory": Theory},
    page.summarize,
)
