from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import pytest
from made_records import made_record

from hvadam_bench.analysis.choice import plateau_options, standard_error
from hvadam_bench.analysis.statistics import Metric, best_options
from hvadam_bench.running.records import Record

ACCURACY, LOSS = Metric("accuracy", "max"), Metric("loss_at_end", "min")


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
    return plateau_options(tuning(values, metric), metric, split_error)["lr"]


def test_the_middle_of_what_ties_is_chosen_and_not_its_best_end() -> None:
    # Two seeds 0.02 apart: a standard error of 0.01.
    values = {1: (0.50, 0.52), 3: (0.79, 0.81), 10: (0.79, 0.81), 30: (0.795, 0.815)}
    assert best_options(tuning(values), ACCURACY) == {"lr": 30}
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
    assert plateau_options(runs, ACCURACY, split_error=0.1) == {"lr": 3, "gamma": 1.0}


def test_the_standard_error_is_that_of_a_mean_over_seeds_and_split() -> None:
    trials = [list(tuning({lr: (0.5, 0.5 + d)})) for lr, d in ((1, 0.02), (3, 0.04), (10, 0.4))]
    # Of two values d apart the variance is d²/2, that of their mean d²/4; the median trial's.
    assert standard_error(trials, ACCURACY) == pytest.approx(0.02)
    assert standard_error(trials, ACCURACY, 0.015) == pytest.approx(0.025)
    assert standard_error([trials[0][:1]], ACCURACY) == 0.0
