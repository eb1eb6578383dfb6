"""Records of runs that never were, for the tests of what reads records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.options import basis_of
from hvadam_bench.running.records import Point, Record, Status


def made_record(
    value: float = 0.5,
    *,
    config: RunConfig | None = None,
    seed: int = 0,
    status: Status = "done",
    curve: Sequence[float] | None = None,
    metric: str = "accuracy",
    **options: Any,
) -> Record:
    """Return a run that ended at a value, on both splits unless a validation curve is given.

    Its points lie 10 steps, 320 examples and 2 seconds apart.
    """
    config = config or RunConfig("digits_mlp", "adam", "smoke", seed, options)
    values = [value] if curve is None else curve
    points = tuple(
        Point(10 * i, 320 * i, 2.0 * i, None, {metric: valid, "loss": 1.0})
        for i, valid in enumerate(values, 1)
    )
    test = {metric: value} if status == "done" else {}
    return Record(
        **{"config": config, "status": status, "reason": "" if status == "done" else "made so"},
        **{"curve": points, "test": test, "train_seconds": 1.0, "evaluation_seconds": 0.1},
        **{"environment": {}, "metric": metric, "goal": "min" if metric != "accuracy" else "max"},
        basis=basis_of(config),
    )
