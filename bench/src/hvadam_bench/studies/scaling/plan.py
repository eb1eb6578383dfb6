"""On how many ranks a step is simulated."""

from __future__ import annotations

from typing import NamedTuple


class Plan(NamedTuple):
    """What is simulated."""

    ranks: tuple[int, ...]


def plan(*, smoke: bool = False) -> Plan:
    """Return the numbers of ranks.

    Args:
        smoke: Simulate the smaller number of ranks only.
    """
    return Plan((8,) if smoke else (8, 64))
