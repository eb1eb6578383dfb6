"""Scikit-learn's digits, told apart, coded or drawn by small networks: they need no data files.

The last three were made to compare candidates for a step (decision 32). No paper has
any of these: where there is a "paper" scale it only trains longer.
"""

from __future__ import annotations

from hvadam_bench.tasks._spec import family, scales

_told_apart = family(__name__, metric="accuracy", goal="max")
_fitted = family(__name__, metric="loss", evaluations=5)

TASKS = [
    _told_apart(
        "digits_cnn",
        "Small CNN on scikit-learn's digits",
        scales=scales(
            {"epochs": 240, "batch_size": 32},
            smoke={"epochs": 2, "batch_size": 64},
            paper={"epochs": 800},
        ),
    ),
    _told_apart(
        "digits_mlp",
        "Perceptron on scikit-learn's digits",
        scales=scales(
            {"epochs": 600, "batch_size": 32},
            smoke={"epochs": 2, "batch_size": 64},
            paper={"epochs": 2000},
        ),
    ),
    _fitted(
        "digits_normed_cnn",
        "Small CNN with batch norm on scikit-learn's digits",
        scales=scales(
            {"batch_size": 32, "epochs": 14, "warmup": 0.05}, smoke={"batch_size": 64, "epochs": 2}
        ),
    ),
    _fitted(
        "digits_vae",
        "Variational autoencoder of digits",
        scales=scales(
            {"hidden": 64, "code": 6, "batch_size": 32, "epochs": 30, "warmup": 0.05},
            smoke={"hidden": 16, "code": 2, "batch_size": 64, "epochs": 2},
        ),
    ),
    _fitted(
        "digits_autoencoder",
        "Deep autoencoder of digits, full batch",
        smallest=1.25,
        scales=scales(
            {"images": 200, "widths": [40, 20, 8], "steps": 1000, "warmup": 0.02},
            smoke={"images": 40, "widths": [16, 8], "steps": 60},
        ),
    ),
]
