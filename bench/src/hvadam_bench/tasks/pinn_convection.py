"""Convection solved by a network on points, as in "Challenges in Training PINNs".

At "paper" scale the protocol of arXiv:2402.01868, where β is 40. At "laptop" scale it is 10, on
fewer points, with a smaller network: in some thousand steps Adam with a rate of 0.01 arrives there;
with β of 15 and 20 it did not, for one seed each. Float32 at both, as published; losses stay far
above its rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build a tanh perceptron and the points that its residuals are taken at."""
    from hvadam_bench.problems.physics.convection import convection
    from hvadam_bench.problems.physics.equation import on_grid, problem

    equation = convection(settings["speed"])
    points = on_grid(equation, settings["grid"], settings["inside"], seed)
    return problem(equation, points, settings, seed)


_LAPTOP = {
    "speed": 10.0,
    "grid": [65, 51],
    "inside": 300,
    "width": 32,
    "layers": 3,
    "steps": 4000,
    "warmup": 0.02,
    "schedule": "cosine",
    "dtype": "float32",
    "batch": None,
    "arrived_below": 0.1,
}

TASK = Task(
    name="pinn_convection",
    title="Physics-informed network for convection",
    source="extra",
    metric="loss",
    goal="min",
    build=build,
    scales={
        "smoke": {
            **_LAPTOP,
            "speed": 1.0,
            "grid": [9, 7],
            "inside": 20,
            "width": 8,
            "layers": 2,
            "steps": 60,
        },
        "laptop": _LAPTOP,
        "paper": {
            **_LAPTOP,
            "speed": 40.0,
            "grid": [257, 101],
            "inside": 10_000,
            "width": 200,
            "steps": 41_000,
            "warmup": 0.0,
            "schedule": "constant",
        },
    },
    evaluations=30,
    smallest=1.25,
)
