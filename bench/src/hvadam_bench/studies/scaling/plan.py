"""On how many ranks a step is simulated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """What is simulated."""

    ranks: tuple[int, ...]


def plan(*, smoke: bool = False) -> Plan:
    """Return the numbers of ranks.

    Args:
        smoke: Simulate the smaller number of ranks only.
    """
    return Plan((8,) if smoke else (8, 64))
