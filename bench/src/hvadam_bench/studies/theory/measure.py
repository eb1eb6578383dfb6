"""Every theorem measured, one after the other, rounded to few digits, which keep the file small."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hvadam._version import __version__
from hvadam_bench.studies._results import from_json
from hvadam_bench.studies._study import Place
from hvadam_bench.studies.theory import hidden_vector, nonconvex, regret
from hvadam_bench.studies.theory.plan import Plan
from hvadam_bench.studies.theory.result import HIDDEN_VECTOR, NONCONVEX, REGRET, Theory

DIGITS = 6  # significant ones
# The share of all the work that each part is, roughly.
SHARES = {HIDDEN_VECTOR: 0.05, REGRET: 0.45, NONCONVEX: 0.5}


def measure(plan: Plan, place: Place) -> dict[str, Theory]:
    """Measure the three theorems."""

    def advance(part: str) -> Callable[[float], None]:
        return lambda share: place.on_progress(part, SHARES[part] * share)

    with np.errstate(over="ignore", invalid="ignore"):
        found = {
            "versions": {"hvadam": __version__, "numpy": np.__version__},
            "hidden_vector": hidden_vector.study(plan.runs, plan.steps, advance(HIDDEN_VECTOR)),
            "regret": regret.study(plan.rounds, advance=advance(REGRET)),
            "nonconvex": nonconvex.study(plan.rounds, advance=advance(NONCONVEX)),
        }
    return {"theory": from_json(Theory, rounded(found))}


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
