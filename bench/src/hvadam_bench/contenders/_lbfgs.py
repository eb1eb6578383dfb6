"""What the contenders that end with L-BFGS share: options, how to tell that it is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import BadCase

PAPER = "Liu and Nocedal, 1989, doi:10.1007/BF01589116"
WITH_PAPER = "arXiv:2402.01868, which switches after 1,000, 11,000 or 31,000 of 41,000"
HISTORY = {"history_size": 100, "max_eval": 25}
# A share of the evaluations, and their number, which the runner fills in.
SWITCH = {"switch": 0.5, "horizon": 1000, **HISTORY}
BAD_SWITCH = (
    BadCase({"switch": 1.5}, r"ThenLBFGS: switch must be in \[0, 1\], got 1.5"),
    BadCase({"horizon": 0}, "ThenLBFGS: horizon must be a whole number >= 1, got 0"),
    BadCase({"history_size": 0}, "LBFGS: history_size must be a whole number >= 1, got 0"),
    BadCase({"max_eval": 0.5}, "LBFGS: max_eval must be a whole number >= 1, got 0.5"),
)


def direction(
    places: Sequence[np.ndarray], gradients: Sequence[np.ndarray], options: Mapping[str, Any]
) -> np.ndarray:
    """Return the direction of the step from the last place, by matrices rather than recursion.

    H ← (1 - ρ s yᵀ) H (1 - ρ y sᵀ) + ρ s sᵀ over the pairs of the history, from (sᵀy / yᵀy) 1 of
    the newest one; the direction is -H g.
    """
    pairs = [
        (b - a, d - c)
        for a, b, c, d in zip(places, places[1:], gradients, gradients[1:], strict=False)
    ]
    pairs = [(s, y) for s, y in pairs if s @ y > 0][-options["history_size"] :]
    one = np.eye(len(places[0]))
    h = one * (pairs[-1][0] @ pairs[-1][1]) / (pairs[-1][1] @ pairs[-1][1]) if pairs else one
    for s, y in pairs:
        left = one - np.outer(s, y) / (s @ y)
        h = left @ h @ left.T + np.outer(s, s) / (s @ y)
    return -h @ gradients[-1]
