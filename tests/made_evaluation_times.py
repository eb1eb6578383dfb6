"""Times of evaluations that nobody measured, for the tests of what tells of them."""

from __future__ import annotations

from hvadam_bench.studies.evidence.result import (
    EvaluationTime,
    EvaluationTimes,
    TaskTimes,
)


def made_time(seconds: float, beside: float = 2e-3) -> EvaluationTime:
    """Return three rounds of so many seconds, beside 1, 1/2 and 2 times as many of the other's."""
    return EvaluationTime(
        evaluations=50,
        seconds=(seconds, seconds, seconds),
        reference_seconds=(beside, beside / 2, beside * 2),
    )


def made_evaluation_times(alone: bool | None = True) -> EvaluationTimes:
    """Return the times of two smooth tasks and of one with mini-batches."""
    return EvaluationTimes(
        date="2026-01-01T00:00:00+00:00",
        environment={"machine": {"cpu": "Abacus", "cores": 2}},
        alone=alone,
        threads=1,
        rounds=3,
        tasks={
            "heat_pinn": TaskTimes(
                "smooth", "adam", {"nadam": made_time(2e-3), "hvadam": made_time(3e-3)}
            ),
            "matrix_factorization": TaskTimes("smooth", "adam", {"hvadam": made_time(2.1e-3)}),
            "digits_cnn": TaskTimes("minibatch", "adamw", {"hvadam": made_time(2.5e-3)}),
        },
    )
