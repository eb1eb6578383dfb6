"""Single runs in full, from one start: what Figs. 1 and 2 of the paper show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hvadam_bench.studies.toy_functions.functions import Array, Problem


@dataclass(frozen=True)
class Trace:
    """One run in full: positions and losses, from the start up to its end or its divergence."""

    path: Array
    losses: Array
    diverged: bool


@dataclass(frozen=True)
class Paths:
    """The traces of several contenders from one start, all with one learning rate."""

    problem: Problem
    start: Array
    steps: int
    lr: float
    traces: Mapping[str, Trace]


def follow(
    problem: Problem, contenders: Sequence[str], steps: int, start: Array | None = None
) -> Paths:
    """Run contenders from one start, the function's own if none is given, at the paper's rate."""
    from hvadam_bench.studies.toy_functions.race import COMMON_LR, trace

    first = np.array(problem.function.start if start is None else start, dtype=np.float64)
    traces = {name: trace(problem, name, COMMON_LR, first, steps) for name in contenders}
    return Paths(problem, first, steps, COMMON_LR, traces)
