"""Rates of the Lotka-Volterra equations fitted through a Runge-Kutta integrator: float64.

The prey of two orbits are counted at every step without noise, the predators only at the start:
four rates and the starts are to be found that explain the counts. The loss is the mean squared
error of their logarithms. First guesses depend on the seed; their logarithms lie up to "spread"
away from the truth. `parameter_error` is the worst relative error of the four rates, and a run has
arrived when it is below 1%. The loss has other minima, where orbits are out of phase. There is no
"paper" scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the equation with first guesses, and the counts to explain."""
    import torch

    from hvadam_bench.problems.lotka_volterra import Equation, integrate, truth
    from hvadam_bench.tasks._full_batch import FullBatchProblem

    span = settings["length"], settings["samples"]
    samples = integrate(*truth(), *span)
    counted = torch.ones_like(samples, dtype=torch.bool)
    counted[1:, 1] = False  # the predators only once

    def measure(equation: Equation) -> dict[str, float]:
        error = equation.error()
        return {"parameter_error": error, "arrived": float(error < ARRIVED)}

    return FullBatchProblem(
        lambda: Equation(settings["spread"]),
        lambda equation: (equation(*span) - samples)[counted].square().mean(),
        int(counted.sum()),
        settings,
        seed,
        measure,
    )


ARRIVED = 0.01
_LAPTOP = {"samples": 25, "length": 0.4, "spread": 1.0, "steps": 1000, "warmup": 0.02}

TASK = Task(
    name="ode_fit",
    title="Rates of predators and prey, through an integrator",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={"smoke": {**_LAPTOP, "samples": 5, "steps": 60}, "laptop": _LAPTOP},
    evaluations=30,
    smallest=1.25,
)
