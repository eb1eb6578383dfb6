"""How long the theorems are measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """What is simulated.

    Attributes:
        rounds: Rounds of the online problems, and steps of the non-convex ones.
        runs: Runs of every hidden vector.
        steps: Steps of every hidden vector.
    """

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
