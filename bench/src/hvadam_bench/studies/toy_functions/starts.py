"""Where the runs start: one set of starts to choose learning rates on, others to report.

All starts are laid out in a function's own coordinates and turn with it, so that f1 and f2, or f2
at two angles, are raced from the same places of the same valley.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hvadam_bench.studies.toy_functions.functions import Array, Fan, Problem
from hvadam_bench.studies.toy_functions.race import HUGE

ACROSS, ALONG = 20, 22  # cells of the grid
SAMPLE = 128  # starts of the angle study
TUNING = 128  # starts on which learning rates are chosen

_SEEDS = {"grid": 0, "sample": 1, "tuning": 2}


def starts(problem: Problem | Fan, field: str) -> Array:
    """Return the starts of a field, one a row, in x.

    Args:
        problem: Whose window they fill; of a fan, part by part.
        field: "grid", one drawn in each of ACROSS·ALONG cells (in more than two dimensions as many
            uniform draws), "sample" or "tuning", uniform draws. Fields share no seed.

    The valleys are symmetric: from the centres of the cells three runs of four would mirror
    others, and steps of one length would meet a lattice. So starts are drawn.

    Example:
        >>> grid = starts(Problem.of("f1"), "grid")
        >>> grid.shape, np.unique(np.abs(grid), axis=0).shape
        ((440, 2), (440, 2))
    """
    return np.concatenate([_starts(part, field) for part in problem.parts])


def parse_start(text: str, problems: Sequence[Problem]) -> Array:
    """Read a start out of "x,y", at which all problems are defined.

    Raises:
        ValueError: It is no such start.

    Example:
        >>> parse_start("0.5,1", [Problem.of("f2")]).tolist()
        [0.5, 1.0]
    """
    try:
        start = np.array([float(x) for x in text.split(",")])
    except ValueError:
        start = np.empty(0)
    if start.shape != (2,) or not np.isfinite(start).all():
        raise ValueError(f"valley: a start must be two finite numbers, X,Y; got {text}.")
    for problem in problems:
        if problem.dimension != 2:
            raise ValueError("valley: paths are drawn in the plane; leave out --dimension.")
        if not problem.evaluate(start[None])[0][0] <= HUGE:
            raise ValueError(f"valley: {problem.label} is above {HUGE:g} at the start {text}.")
    return start


def _starts(problem: Problem, field: str) -> Array:
    low, high = (
        np.resize([window[side] for window in problem.function.window], problem.dimension)
        for side in (0, 1)
    )
    count = {"grid": ACROSS * ALONG, "sample": SAMPLE, "tuning": TUNING}[field]
    draw = np.random.default_rng([_SEEDS[field], problem.dimension])
    unit = draw.random((count, problem.dimension))
    if field == "grid" and problem.dimension == 2:
        column, row = np.arange(count) % ACROSS, np.arange(count) // ACROSS  # from the bottom up
        unit = (np.stack([column, row], 1) + unit) / (ACROSS, ALONG)
    return problem.turn(low + (high - low) * unit)
