"""How long the theorems are measured."""

from __future__ import annotations

from typing import NamedTuple


class Plan(NamedTuple):
    """What is simulated: rounds of each problem, and runs and steps of every hidden vector."""

    rounds: int
    runs: int = 400
    steps: int = 1000


def plan(*, rounds: int = 100_000, smoke: bool = False) -> Plan:
    """Return what is simulated.

    Args:
        rounds: Rounds of each problem.
        smoke: Take few rounds, runs and steps.
    """
    return Plan(20, 20, 100) if smoke else Plan(rounds)
