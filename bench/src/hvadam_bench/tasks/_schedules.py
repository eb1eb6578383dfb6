"""The schedule of the learning rate that most problems share."""

from __future__ import annotations

import math

from hvadam_bench.tasks._spec import Problem


def warm_cosine(step: int, steps: int, rising: int) -> float:
    """Return a factor that rises linearly for some steps, then falls to 0 along half a cosine.

    Args:
        step: From 0.
        steps: Of the whole run.
        rising: Of the rise.

    Example:
        >>> [round(warm_cosine(step, 6, 2), 2) for step in range(7)]
        [0.5, 1.0, 1.0, 0.85, 0.5, 0.15, 0.0]
    """
    if step < rising:
        return (step + 1) / rising
    done = (step - rising) / max(1, steps - rising)
    return (1 + math.cos(math.pi * done)) / 2


class AnnealedProblem(Problem):
    """A problem whose learning rate follows `warm_cosine`.

    Attributes:
        rising: The steps over which the rate rises.
    """

    rising: int

    def lr_factor(self, step: int) -> float:
        return warm_cosine(step, self.steps, self.rising)
