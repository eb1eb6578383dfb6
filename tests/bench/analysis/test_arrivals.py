from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_records import made_record

from hvadam_bench.analysis import arrivals
from hvadam_bench.analysis.grouping import TaskResults, group
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Record


def run(contender: str, seed: int, arrived: bool | None) -> Record:
    """Return a run that arrived, did not, or (None) diverged."""
    config = RunConfig("digits_mlp", contender, "smoke", seed, {})
    if arrived is None:
        return made_record(config=config, metric="loss", status="diverged")
    record = made_record(config=config, metric="loss")
    return replace(record, test={**record.test, "arrived": float(arrived)})


def task(**ends: list[bool | None]) -> TaskResults:
    runs = [run(name, seed, end) for name, own in ends.items() for seed, end in enumerate(own)]
    return group(runs)[0]


def test_runs_without_an_end_have_not_arrived() -> None:
    found = arrivals.arrivals(task(adam=[True, True, False, None], hvadam=[None, None]))
    assert (found["adam"].arrived, found["adam"].n, found["adam"].share) == (2, 4, 0.5)
    assert (found["hvadam"].arrived, found["hvadam"].n) == (0, 2)
    assert found["hvadam"].interval.low == 0


def test_a_task_is_solved_if_someone_arrives_in_half_of_the_runs() -> None:
    assert arrivals.is_solved(task(adam=[True, False], hvadam=[False, False]))
    assert not arrivals.is_solved(task(adam=[True, False, False], hvadam=[None, False, False]))


def test_a_task_without_a_solution_counts_as_solved() -> None:
    results = group([made_record(0.5, metric="loss", seed=seed) for seed in range(3)])[0]
    assert arrivals.arrivals(results) == {}
    assert arrivals.is_solved(results)


@given(st.integers(0, 60), st.integers(1, 60))
def test_wilson_holds_the_shares_whose_score_test_does_not_reject(count: int, n: int) -> None:
    count = min(count, n)
    found = arrivals.wilson(count, n)
    assert 0 <= found.low <= count / n + 1e-12
    assert count / n - 1e-12 <= found.high <= 1
    for end in (found.low, found.high):
        if 1e-9 < end < 1 - 1e-9:  # there the score test is just at its level
            score = abs(count / n - end) / math.sqrt(end * (1 - end) / n)
            assert score == pytest.approx(1.959964, abs=1e-5)


def test_wilson_of_nothing_is_everything() -> None:
    assert arrivals.wilson(0, 0)[:2] == (0, 1)
