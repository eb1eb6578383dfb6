"""Step times in JAX: what is timed versus what. No test looks at a real time."""

from __future__ import annotations

from itertools import count

import pytest
from made_timings import TINY

from hvadam_bench.studies.speed import jax_steps
from hvadam_bench.studies.speed.plan import Plan


@pytest.mark.slow
def test_everyone_steps_as_often_and_is_timed_versus_adam() -> None:
    ticks = count()
    told: list[float] = []
    found = jax_steps.benchmark(
        Plan("speed-jax", (TINY,), rounds=2, group_seconds=0.0),
        lambda doing, share: told.append(share),
        clock=lambda: float(next(ticks)),
    )
    assert found["versions"].keys() == {"jax", "optax"}
    [measured] = found["shapes"]
    assert [row["contender"] for row in measured["results"]] == ["HVAdam", "Adam", "AdaBelief"]
    for row in measured["results"]:
        assert row["seconds"] == row["reference_seconds"] == [1.0, 1.0]
        assert row["compile_seconds"] > 0
        assert row["temporary_bytes"] >= 0
    assert sum(told) == pytest.approx(1.0)
