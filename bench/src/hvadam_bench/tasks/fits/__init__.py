"""Fits of functions, matrices, pictures and equations: synthetic data, mostly without noise.

Those that end at "loss" alone were chosen to choose a step on, with the other tasks of `step_rule`;
the others also tell whether a run has arrived at a solution. Only `siren_image` is of a paper.
"""

from __future__ import annotations

from hvadam_bench.tasks._spec import family, scales

_task = family(__name__, metric="loss", smallest=1.25)

TASKS = [
    _task(
        "two_spirals",
        "Two spirals, full batch",
        scales=scales(
            {"points": 200, "turns": 1.75, "width": 24, "steps": 2000, "warmup": 0.02},
            {"points": 40, "turns": 0.5, "width": 8, "steps": 60},
        ),
        evaluations=5,
    ),
    _task(
        "multiscale_regression",
        "Waves of several lengths fitted, full batch",
        scales=scales(
            {"points": 128, "frequencies": [1, 2], "width": 32, "steps": 1500, "warmup": 0.02},
            {"points": 32, "frequencies": [1], "width": 8, "steps": 60},
        ),
        evaluations=5,
    ),
    _task(
        "matrix_factorization",
        "Factorization of an ill-conditioned matrix",
        scales=scales(
            {"size": 60, "rank": 8, "condition": 1e4, "steps": 1500, "warmup": 0.02},
            {"size": 10, "rank": 2, "condition": 10.0, "steps": 60},
        ),
        evaluations=5,
    ),
    _task(
        "online_regression",
        "Regression on a stream of noisy examples",
        "problems.OnlineRegressionProblem",
        scales=scales(
            {
                **{"inputs": 24, "spread": 30.0, "width": 32, "noise": 0.3, "evaluated": 2000},
                **{"batch_size": 16, "steps": 2000, "warmup": 0.05},
            },
            {"inputs": 6, "width": 8, "evaluated": 200, "steps": 60},
        ),
        stream=True,
        evaluations=5,
        smallest=None,
    ),
    _task(
        "matrix_completion",
        "Completion of an ill-conditioned matrix",
        scales=scales(
            {
                **{"size": 160, "rank": 10, "condition": 1000.0, "seen": 0.3},
                **{"steps": 6000, "warmup": 0.02},
            },
            {"size": 12, "rank": 2, "condition": 5.0, "seen": 0.7, "steps": 60},
        ),
        evaluations=30,
    ),
    _task(
        "ode_fit",
        "Rates of predators and prey, through an integrator",
        scales=scales(
            {"samples": 25, "length": 0.4, "spread": 1.0, "steps": 1000, "warmup": 0.02},
            {"samples": 5, "steps": 60},
        ),
        evaluations=30,
    ),
    _task(
        "siren_image",
        "Coordinate network fits a picture, full batch",
        scales=scales(
            {
                **{
                    "size": 64,
                    "width": 32,
                    "layers": 3,
                    "omega": 30.0,
                    "steps": 2000,
                    "warmup": 0.02,
                },
                **{"arrived": 35.0, "batch": None, "dtype": "float32"},
            },
            {"size": 16, "width": 16, "layers": 2, "steps": 60},
            {"size": 256, "width": 256, "steps": 15_000, "arrived": 40.0},
        ),
        evaluations=30,
    ),
]
