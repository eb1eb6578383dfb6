from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_records import made_record

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.statistics import Metric

ACCURACY = Metric("accuracy", "max")
PERPLEXITY = Metric("perplexity", "min")
numbers = st.floats(-1e6, 1e6)


def test_stats_load_no_framework() -> None:
    code = (
        "import sys, hvadam_bench.analysis.statistics; "
        "assert not {'torch', 'jax'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_runs_without_an_end_count_as_worst() -> None:
    ended = [made_record(0.9), made_record(0.8)]
    lost = made_record(status="diverged", curve=[0.99])
    assert statistics.final(lost, ACCURACY) == -math.inf
    assert statistics.final(lost, PERPLEXITY) == math.inf
    assert statistics.summarize(statistics.final(r, ACCURACY) for r in [*ended, lost]).median == 0.8


def test_a_summary_of_nothing_says_so() -> None:
    assert statistics.summarize([]).n == 0


@given(st.lists(numbers, min_size=1, max_size=5))
def test_intervals_are_reproducible_and_hold_what_they_are_of(values: list[float]) -> None:
    interval = statistics.bootstrap(values)
    assert interval == statistics.bootstrap(list(reversed(values)))
    assert min(values) <= interval.low <= interval.high <= max(values)
    wider = statistics.bootstrap(values, level=0.99)
    assert wider.low <= interval.low
    assert wider.high >= interval.high


def test_the_interval_of_a_mean_is_as_wide_as_theory_says() -> None:
    # Of 1..100: the standard error of the mean is sqrt((100² - 1) / 12 / 100) = 2.887.
    values = [float(i) for i in range(1, 101)]
    interval = statistics.bootstrap(values, statistic=lambda drawn: math.fsum(drawn) / len(drawn))
    assert interval.low == pytest.approx(50.5 - 1.96 * 2.887, abs=0.5)
    assert interval.high == pytest.approx(50.5 + 1.96 * 2.887, abs=0.5)


def test_only_seeds_that_both_have_are_paired() -> None:
    reference = [made_record(0.5, seed=seed) for seed in (0, 1, 2)]
    contender = [made_record(0.6, seed=seed) for seed in (2, 3)]
    assert statistics.paired(contender, reference, ACCURACY) == [(0.6, 0.5)]


def test_time_to_target_is_the_first_evaluation_that_shows_it() -> None:
    run = made_record(curve=[0.2, 0.7, 0.6, 0.8])
    assert statistics.time_to_target(run, ACCURACY, 0.7) == statistics.Reached(step=20, seconds=4.0)
    assert statistics.time_to_target(run, ACCURACY, 0.81) is None
    falling = made_record(curve=[90.0, 80.0], metric="perplexity")
    assert statistics.time_to_target(falling, PERPLEXITY, 85.0) == statistics.Reached(
        step=20, seconds=4.0
    )
    reference = [made_record(curve=[0.1, end], seed=i) for i, end in enumerate((0.5, 0.9, 0.7))]
    assert statistics.target(reference, ACCURACY) == 0.7


def test_curves_count_the_runs_that_stopped() -> None:
    runs = [made_record(curve=[0.1, 0.5]), made_record(curve=[0.3, 0.7])]
    runs.append(made_record(curve=[0.2], status="diverged"))
    first, last = statistics.curves(runs, ACCURACY)
    assert (first.step, first.summary.median) == (10, 0.2)
    assert (last.summary.n, last.summary.median) == (3, 0.5)


costs = st.dictionaries(
    st.sampled_from("abcd"),
    st.dictionaries(st.sampled_from(["x", "y", "z"]), st.floats(0.1, 1e3), min_size=1),
    min_size=1,
)


@given(costs, st.sampled_from(["ratio", "gap"]))
def test_profiles_rise_to_the_share_of_tasks_solved(tasks: dict, distance: str) -> None:
    profiles = statistics.profile(tasks, distance)  # pyright: ignore[reportArgumentType]
    for name, steps in profiles.items():
        taus, shares = zip(*steps, strict=True)
        assert list(taus) == sorted(taus)
        assert list(shares) == sorted(shares)
        assert taus[0] == (1 if distance == "ratio" else 0)
        assert shares[-1] == sum(name in task for task in tasks.values()) / len(tasks)
    # Someone is best on every task.
    assert sum(steps[0][1] for steps in profiles.values()) >= 1 - 1e-12


def test_profiles_of_costs_below_zero_have_no_ratio() -> None:
    with pytest.raises(ValueError, match=r"ratios need costs >= 0, got -1; use 'gap'"):
        statistics.profile({"a": {"x": -1.0, "y": 2.0}})
    assert statistics.profile({"a": {"x": -1.0, "y": 2.0}}, "gap")["y"] == [(0, 0), (3, 1)]


def test_the_best_options_are_those_of_the_best_median() -> None:
    def seeds(lr: float, *values: float) -> list:
        return [made_record(value, seed=1000 + i, lr=lr) for i, value in enumerate(values)]

    runs = [*seeds(0.1, 0.9, 0.1, 0.1), *seeds(0.01, 0.5, 0.6, 0.7), *seeds(1.0, 0.6, 0.6, 0.6)]
    assert statistics.best_options(runs, ACCURACY) == {"lr": 0.01}
    assert statistics.best_options(runs, Metric("accuracy", "min")) == {"lr": 0.1}
    lost = [made_record(seed=1000, lr=lr, status="diverged") for lr in (0.1, 0.01, 1.0)]
    assert statistics.best_options(lost, ACCURACY) == {"lr": 0.01}


def test_sensitivity_is_the_range_around_the_best() -> None:
    # 1e-1 is within 10% as well, but 1e-2 lies between and is not.
    values = {1e-4: 0.5, 1e-3: 0.95, 3e-3: 1.0, 1e-2: 0.8, 1e-1: 0.99}
    runs = [made_record(value, seed=1000, lr=lr) for lr, value in values.items()]
    runs.append(made_record(0.2, seed=1000, lr=3e-3, gamma=0.0))  # a worse one at the same rate
    found = statistics.sensitivity(runs, ACCURACY, tolerance=0.1)
    assert (found.best, found.low, found.high) == (3e-3, 1e-3, 3e-3)
    assert found.decades == pytest.approx(math.log10(3))
    assert found.values == values
