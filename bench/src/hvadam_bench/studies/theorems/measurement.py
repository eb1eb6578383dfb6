"""The study: every theorem measured, one after the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hvadam._version import __version__
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.theorems import hidden_vector, nonconvex, regret
from hvadam_bench.studies.theorems.result import HIDDEN_VECTOR, NONCONVEX, REGRET, Theory

# The share of all the work that each part is, roughly.
SHARES = {HIDDEN_VECTOR: 0.05, REGRET: 0.45, NONCONVEX: 0.5}


def measure(rounds: int, on_progress: OnProgress = ignore_progress) -> Theory:
    """Measure the three theorems.

    Args:
        rounds: Of the online problems and of the non-convex ones.
        on_progress: Told now and then what is done.
    """

    def told(part: str, total: int) -> Callable[[int], None]:
        return lambda done: on_progress(part, SHARES[part] * done / total)

    with np.errstate(over="ignore", invalid="ignore"):
        return Theory(
            versions={"hvadam": __version__, "numpy": np.__version__},
            hidden_vector=hidden_vector.study(told(HIDDEN_VECTOR, len(hidden_vector.CASES))),
            regret=regret.study(rounds, advance=told(REGRET, rounds)),
            nonconvex=nonconvex.study(rounds, advance=told(NONCONVEX, rounds)),
        ).rounded()
