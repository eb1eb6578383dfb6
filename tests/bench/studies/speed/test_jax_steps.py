"""Step times in JAX: what is measured beside what. No test looks at a real time."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

import pytest

from hvadam_bench.studies.speed import jax_steps
from hvadam_bench.studies.speed.page import jax_table, render
from hvadam_bench.studies.speed.results import Budget, JaxMeasurement, JaxSpeed, JaxTiming
from hvadam_bench.studies.speed.shapes import Shape

SHAPE = Shape("tiny", "one tensor of 8", ((8,),))


def timing(name: str, seconds: float, compile_seconds: float) -> JaxTiming:
    return JaxTiming(
        contender=name,
        parameters=8,
        steps=1,
        seconds=(seconds, seconds, seconds),
        reference_seconds=(1.0, 0.5, 2.0),
        temporary_bytes=16,
        compile_seconds=compile_seconds,
    )


def made(*timings: JaxTiming) -> JaxSpeed:
    return JaxSpeed(
        date="2026-01-01T00:00:00+00:00",
        versions={"jax": "0", "optax": "0"},
        machine={"cpu": "a processor"},
        threads=1,
        plan=Budget(),
        reference="Adam",
        shapes=(JaxMeasurement("tiny", "one tensor of 8", timings),),
    )


@pytest.mark.slow
def test_everyone_steps_as_often_and_is_timed_beside_adam() -> None:
    ticks = count()
    budget = Budget(rounds=2, group_seconds=0.0, warm_up=3)
    told: list[float] = []
    found = jax_steps.benchmark(
        [SHAPE],
        budget,
        clock=lambda: float(next(ticks)),
        on_progress=lambda doing, share: told.append(share),
    )
    [measured] = found.shapes
    assert [row.contender for row in measured.results] == ["HVAdam", "Adam", "AdaBelief"]
    for row in measured.results:
        assert row.seconds == row.reference_seconds == (1.0, 1.0)
    assert sum(told) == pytest.approx(1.0)


def test_the_table_and_the_page(tmp_path: Path) -> None:
    found = made(timing("HVAdam", 3.0, 6.0), timing("Adam", 1.0, 2.0))
    table = jax_table(found, found.shapes[0])
    assert table.rows[0] == ["HVAdam", "3000", "3.00 (2.25 to 4.50)", "2.00", "6.0 s", "3.0"]
    [path] = render({"speed-jax": found}, tmp_path)
    assert path == tmp_path / "docs" / "speed-jax.md"
    page = path.read_text(encoding="utf-8")
    assert "## one tensor of 8\n\n| optimizer | ms |" in page
    assert "a processor" in page


def test_cores_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4, 7}, raising=False)
    monkeypatch.setattr(
        os, "sched_setaffinity", lambda _, cores: given.append(cores), raising=False
    )
    jax_steps.limit_threads(1)
    assert given == [[4]]
