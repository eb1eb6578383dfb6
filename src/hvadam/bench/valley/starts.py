"""Where the runs start: one set of starts to choose learning rates on, others to report.

All starts are laid out in a function's own coordinates and turn with it, so that f1 and f2, or f2
at two angles, are raced from the same places of the same valley.
"""

from __future__ import annotations

import numpy as np

from hvadam.bench.valley.functions import Array, Fan, Problem

# Cells of the grid across and along. Even, so that no start lies on a kink of a valley.
ACROSS, ALONG = 20, 22
SAMPLE = 64  # starts of the angle study
TUNING = 48  # starts on which learning rates are chosen

_SEEDS = {"sample": 1, "tuning": 2}


def starts(problem: Problem | Fan, field: str) -> Array:
    """One start a row, in x.

    Args:
        problem: Whose window they fill; of a fan, part by part.
        field: "grid", the centres of ACROSS·ALONG cells (in more than two dimensions as many
            uniform draws), "sample" or "tuning", uniform draws that share no seed.

    Example:
        >>> grid = starts(Problem.of("f1"), "grid")
        >>> grid.shape, grid[0].round(3).tolist(), grid[-1].round(3).tolist()
        ((440, 2), [-1.9, -1.909], [1.9, 1.909])
    """
    return np.concatenate([_starts(part, field) for part in problem.parts])


def _starts(problem: Problem, field: str) -> Array:
    low, high = (
        np.resize([window[side] for window in problem.function.window], problem.dimension)
        for side in (0, 1)
    )
    if field == "grid" and problem.dimension == 2:
        cells = np.meshgrid(_centres(ACROSS), _centres(ALONG), indexing="xy")
        unit = np.stack([c.ravel() for c in cells], 1)  # rows of the map, from its bottom up
    else:
        count = {"grid": ACROSS * ALONG, "sample": SAMPLE, "tuning": TUNING}[field]
        draw = np.random.default_rng([_SEEDS.get(field, 0), problem.dimension])
        unit = draw.random((count, problem.dimension))
    z = low + (high - low) * unit
    return problem.turn(z)


def _centres(count: int) -> Array:
    return (np.arange(count) + 0.5) / count
