"""Fits of functions, matrices, pictures and equations: synthetic data, mostly without noise.

Those that end at "loss" alone were made to compare candidates for a step (decisions 32 and 38);
the others also report whether a run converged. Only `siren_image` is of a paper.
"""

from __future__ import annotations

from hvadam_bench.tasks._spec import Settings, Task, family, scales

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


def _valley(name: str, title: str, laptop: Settings, smoke: Settings) -> Task:
    """Return a task of `valleys`; they were chosen to choose a momentum on."""
    laptop, smoke = {**laptop, "warmup": 0.02}, {**smoke, "steps": 60}
    return _task(name, title, f"valleys.{name}", scales=scales(laptop, smoke), evaluations=5)


TASKS += [
    _valley(
        "deep_linear",
        "Deep linear network",
        {
            **{"width": 16, "layers": 5, "examples": 256, "condition": 100.0, "batch": None},
            "steps": 2000,
        },
        {"width": 4, "layers": 2, "examples": 32, "condition": 4.0},
    ),
    _valley(
        "rosenbrock_chain",
        "Rosenbrock's valley in many dimensions",
        {"size": 60, "steps": 1500},
        {"size": 6},
    ),
    _valley(
        "phase_retrieval",
        "A signal from the squares of its sums",
        {"size": 80, "measured": 480, "spread": 1000.0, "steps": 600},
        {"size": 6, "measured": 40, "spread": 2.0},
    ),
    _valley(
        "tensor_decomposition",
        "Factors of a cube, nearly parallel",
        {"size": 15, "rank": 5, "alike": 0.8, "steps": 3000},
        {"size": 4, "rank": 2, "alike": 0.3},
    ),
    _valley(
        "adding_rnn",
        "Recurrent network that adds, full batch",
        {"sequences": 400, "length": 16, "hidden": 16, "steps": 600},
        {"sequences": 20, "length": 4, "hidden": 8},
    ),
]
