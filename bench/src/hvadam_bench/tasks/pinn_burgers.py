"""Burgers' equation solved by a network on points, as DeepXDE's example has it.

At "paper" scale that example: ν is 0.01/π, 15,000 steps at a constant rate, float32. At "laptop"
scale ν is 0.05/π, so that fewer points see the shock; in float64, as later work on this equation
has it (arXiv:2501.16371). Errors are against our own quadrature of the solution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build a tanh perceptron and the points that its residuals are taken at."""
    from hvadam_bench.problems.physics.burgers import burgers
    from hvadam_bench.problems.physics.equation import problem, scattered

    equation = burgers(settings["viscosity"] / math.pi)
    points = scattered(equation, settings["inside"], settings["start"], settings["ends"], seed)
    return problem(equation, points, settings, seed)


_LAPTOP = {
    "viscosity": 0.05,
    "grid": [65, 51],
    "inside": 300,
    "start": 40,
    "ends": 40,
    "width": 20,
    "layers": 3,
    "steps": 4000,
    "warmup": 0.02,
    "schedule": "cosine",
    "dtype": "float64",
    "batch": None,
    "arrived_below": 0.1,
}

TASK = Task(
    name="pinn_burgers",
    title="Physics-informed network for Burgers' equation",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={
        "smoke": {
            **_LAPTOP,
            "viscosity": 0.5,
            "grid": [9, 7],
            "inside": 20,
            "start": 8,
            "ends": 8,
            "width": 8,
            "layers": 2,
            "steps": 60,
        },
        "laptop": _LAPTOP,
        "paper": {
            **_LAPTOP,
            "viscosity": 0.01,
            "grid": [257, 101],
            "inside": 2540,
            "start": 160,
            "ends": 80,
            "width": 20,
            "steps": 15_000,
            "warmup": 0.0,
            "schedule": "constant",
            "dtype": "float32",
        },
    },
    evaluations=30,
    smallest=1.25,
)
