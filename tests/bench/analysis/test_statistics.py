from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_records import made_record

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.statistics import Metric
from hvadam_bench.running.records import Record

ACCURACY, LOSS = Metric("accuracy", "max"), Metric("loss_at_end", "min")
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


def test_the_interval_of_a_median_is_as_wide_as_theory_says() -> None:
    # Of 1..100: the standard error of the median's rank is sqrt(100) / 2 = 5.
    interval = statistics.bootstrap([float(i) for i in range(1, 101)])
    assert interval.low == pytest.approx(50.5 - 1.96 * 5, abs=1.5)
    assert interval.high == pytest.approx(50.5 + 1.96 * 5, abs=1.5)


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


def test_curves_count_the_runs_that_stopped() -> None:
    runs = [made_record(curve=[0.1, 0.5]), made_record(curve=[0.3, 0.7])]
    runs.append(made_record(curve=[0.2], status="diverged"))
    first, last = statistics.curves(runs, ACCURACY)
    assert (first.step, first.summary.median) == (10, 0.2)
    assert (last.summary.n, last.summary.median) == (3, 0.5)


def test_the_best_options_are_those_of_the_best_median() -> None:
    def seeds(lr: float, *values: float) -> list:
        return [made_record(value, seed=1000 + i, lr=lr) for i, value in enumerate(values)]

    runs = [*seeds(0.1, 0.9, 0.1, 0.1), *seeds(0.01, 0.5, 0.6, 0.7), *seeds(1.0, 0.6, 0.6, 0.6)]
    assert statistics.best_options(runs, ACCURACY) == {"lr": 0.01}
    assert statistics.best_options(runs, Metric("accuracy", "min")) == {"lr": 0.1}
    lost = [made_record(seed=1000, lr=lr, status="diverged") for lr in (0.1, 0.01, 1.0)]
    assert statistics.best_options(lost, ACCURACY) == {"lr": 0.01}


def test_a_rate_counts_by_the_best_of_its_other_options() -> None:
    values = {1e-4: 0.5, 1e-3: 0.95, 3e-3: 1.0, 1e-2: 0.8, 1e-1: 0.99}
    runs = [made_record(value, seed=1000, lr=lr) for lr, value in reversed(values.items())]
    runs.append(made_record(0.2, seed=1000, lr=3e-3, gamma=0.0))
    assert list(statistics.by_rate(runs, ACCURACY).items()) == list(values.items())


@pytest.mark.parametrize(
    ("values", "share", "at"),
    [
        ([0.0, 10.0, 20.0], 0.25, 5.0),
        ([1.0, 2.0, 3.0, 4.0, math.inf], 0.75, 4.0),
        ([1.0, math.inf], 0.5, math.inf),
        ([-math.inf, 1.0], 0.5, -math.inf),
        ([-math.inf, math.inf], 0.5, 0.0),
        ([math.inf, math.inf], 0.5, math.inf),
    ],
)
def test_quantiles_of_infinite_values_too(values: list[float], share: float, at: float) -> None:
    assert statistics.quantile(values, share) == at


def tuning(values: Mapping[int, Sequence[float]], metric: Metric = ACCURACY) -> Iterator[Record]:
    """Yield a run for each value at a rate; infinite ones diverged."""
    for lr, own in values.items():
        for seed, value in enumerate(own):
            status = "done" if math.isfinite(value) else "diverged"
            end = value if math.isfinite(value) else 0.0
            yield made_record(end, seed=seed, lr=lr, status=status, metric=metric.name)


def chosen(
    values: Mapping[int, Sequence[float]], metric: Metric = ACCURACY, split_error: float = 0.0
) -> int:
    return statistics.plateau_options(tuning(values, metric), metric, split_error)["lr"]


def test_the_middle_of_what_ties_is_chosen_and_not_its_best_end() -> None:
    # Two seeds 0.02 apart: a standard error of 0.01.
    values = {1: (0.50, 0.52), 3: (0.79, 0.81), 10: (0.79, 0.81), 30: (0.795, 0.815)}
    assert statistics.best_options(tuning(values), ACCURACY) == {"lr": 30}
    assert chosen(values) == 10
    # The same with everything turned over.
    losses = {lr: [1 - v for v in own] for lr, own in values.items()}
    assert chosen(losses, LOSS) == 10


def test_what_is_further_than_one_standard_error_is_no_tie() -> None:
    # The medians are 0.8 and 0.8 - d with a standard error of 0.01.
    for d, expected in ((0.009, 3), (0.011, 10)):
        values = {1: (0.79 - d, 0.81 - d), 3: (0.79 - d, 0.81 - d), 10: (0.79, 0.81)}
        assert chosen(values) == expected


def test_the_split_widens_ties() -> None:
    values = {1: (0.78,), 3: (0.79,), 10: (0.80,), 30: (0.3,)}
    assert chosen(values) == 10  # one seed, no error: the best
    assert chosen(values, split_error=0.03) == 3


def test_of_two_in_the_middle_the_better_one() -> None:
    values = {1: (0.1,), 3: (0.79,), 10: (0.80,), 30: (0.1,)}
    assert chosen(values, split_error=0.05) == 10
    assert chosen({**values, 3: (0.81,)}, split_error=0.05) == 3


def test_a_gap_ends_the_plateau() -> None:
    values = {1: (0.8,), 3: (0.2,), 10: (0.8,), 30: (0.81,), 100: (0.8,)}
    assert chosen(values, split_error=0.05) == 30


def test_what_diverged_neither_ties_nor_widens() -> None:
    worst = -math.inf
    values = {1: (0.80, 0.80), 3: (0.81, 0.81), 10: (0.5, worst), 30: (worst, worst)}
    assert chosen(values) == 3
    assert chosen({lr: (worst, worst) for lr in (1, 3, 10)}) == 1  # the more hopeful end


def test_ties_are_sought_among_the_same_other_options() -> None:
    runs = [
        made_record(value, lr=lr, gamma=gamma)
        for gamma, values in ((0.0, (0.7, 0.8, 0.8)), (1.0, (0.8, 0.81, 0.1)))
        for lr, value in zip((1, 3, 10), values, strict=True)
    ]
    assert statistics.plateau_options(runs, ACCURACY, split_error=0.1) == {"lr": 3, "gamma": 1.0}


def test_the_standard_error_is_that_of_a_mean_over_seeds_and_split() -> None:
    trials = [list(tuning({lr: (0.5, 0.5 + d)})) for lr, d in ((1, 0.02), (3, 0.04), (10, 0.4))]
    # Of two values d apart the variance is d²/2, that of their mean d²/4; the median trial's.
    assert statistics.standard_error(trials, ACCURACY) == pytest.approx(0.02)
    assert statistics.standard_error(trials, ACCURACY, 0.015) == pytest.approx(0.025)
    assert statistics.standard_error([trials[0][:1]], ACCURACY) == 0.0
