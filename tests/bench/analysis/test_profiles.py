from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_records import made_record

from hvadam_bench.analysis import profiles
from hvadam_bench.analysis.grouping import group
from hvadam_bench.analysis.statistics import Metric
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Record

PERPLEXITY = Metric("perplexity", "min")
ACCURACY = Metric("accuracy", "max")


def run(contender: str, seed: int, curve: list[float], status: str = "done") -> Record:
    config = RunConfig("digits_mlp", contender, "smoke", seed, {})
    return made_record(curve[-1], config=config, curve=curve, metric="perplexity", status=status)  # pyright: ignore[reportArgumentType]


def test_the_target_is_the_best_by_nine_tenths_of_the_run() -> None:
    # Ten evaluations: the ninth is the last that counts, and its rise takes back nothing.
    falling = [10.0, 9, 8, 7, 6, 5, 4, 2, 3, 1]
    runs = [
        run("adam", seed, [factor * v for v in falling]) for seed, factor in enumerate((1, 2, 4))
    ]
    assert profiles.target(runs, PERPLEXITY) == 4
    assert profiles.target(runs[:1], PERPLEXITY, share=1.0) == 1
    rising = [made_record(curve=[10.0 * i for i in range(1, 11)])]
    assert profiles.target(rising, ACCURACY) == 90


def test_a_reference_that_does_not_end_sets_no_target() -> None:
    lost = [run("adam", seed, [1.0, 0.5], "diverged") for seed in (0, 1)]
    assert profiles.target([*lost, run("adam", 2, [1.0, 0.5])], PERPLEXITY) is None
    assert profiles.target([], PERPLEXITY) is None
    kept = [run("adam", seed, [1.0, 0.5]) for seed in (2, 3, 4)]
    assert profiles.target([*lost, *kept], PERPLEXITY) == 1.0


def test_half_of_the_reference_is_there_by_then() -> None:
    curves = [[9.0, 7, 5, 3, 3, 3, 2, 2, 2, 1], [9.0, 8, 7, 6, 5, 4, 3, 2, 1, 1]]
    runs = [run("adam", seed, curve) for seed, curve in enumerate(curves)]
    goal = profiles.target(runs, PERPLEXITY)
    assert goal == 1.5
    assert profiles.times_to_target(group(runs)[0], 2.0) == {"adam": 70}
    late = run("adam", 2, [9.0] * 10)
    assert profiles.times_to_target(group([runs[0], late])[0], 1.5) == {"adam": 100}
    assert profiles.times_to_target(group([late])[0], 1.5) == {"adam": math.inf}


def test_times_are_those_of_the_run_in_the_middle_and_never_is_infinite() -> None:
    runs = [run("adam", seed, [3.0, 2, 1]) for seed in range(3)]
    runs += [
        run("hvadam", 0, [1.0, 1, 1]),
        run("hvadam", 1, [3.0, 1, 1]),
        run("hvadam", 2, [9.0, 9, 9]),
    ]
    runs += [run("nadam", seed, [9.0, 9, 9]) for seed in range(3)]
    times = profiles.times_to_target(group(runs)[0], 1.0)
    assert times == {"hvadam": 20, "adam": 30, "nadam": math.inf}


def test_profiles_of_times_leave_out_who_never_arrives() -> None:
    times = {"a": {"adam": 100.0, "hvadam": 50.0}, "b": {"adam": 100.0, "hvadam": math.inf}}
    found = profiles.profile(times)
    assert found["adam"] == [(1, 0.5), (2, 1)]
    assert found["hvadam"] == [(1, 0.5)]
    # Adam: half of the tasks from 1 to 2, all of them from 2 to 4.
    assert profiles.score(found["adam"]) == pytest.approx((0.5 * 1 + 1.0 * 2) / 3)
    assert profiles.score(found["hvadam"]) == pytest.approx(0.5)


times = st.dictionaries(
    st.sampled_from("abcd"),
    st.fixed_dictionaries({"x": st.floats(1, 100), "y": st.floats(1, 100)}),
    min_size=1,
)


@given(times)
def test_the_score_is_the_mean_over_tasks_of_the_room_left(tasks: dict) -> None:
    # The area under a step at τ is what lies right of it.
    for name, steps in profiles.profile(tasks).items():
        ratios = [task[name] / min(task.values()) for task in tasks.values()]
        room = [max(0.0, 4 - ratio) / 3 for ratio in ratios]
        assert profiles.score(steps) == pytest.approx(sum(room) / len(room))


costs = st.dictionaries(
    st.sampled_from("abcd"),
    st.dictionaries(st.sampled_from(["x", "y", "z"]), st.floats(0.1, 1e3), min_size=1),
    min_size=1,
)


@given(costs)
def test_profiles_rise_to_the_share_of_tasks_solved(tasks: dict) -> None:
    found = profiles.profile(tasks)
    for name, steps in found.items():
        taus, shares = zip(*steps, strict=True)
        assert list(taus) == sorted(taus)
        assert list(shares) == sorted(shares)
        assert taus[0] == 1
        assert shares[-1] == sum(name in task for task in tasks.values()) / len(tasks)
    # Someone is best on every task.
    assert sum(steps[0][1] for steps in found.values()) >= 1 - 1e-12


def test_who_is_nowhere_to_be_timed_never_arrives() -> None:
    assert profiles.middle_reached([], PERPLEXITY, 1.0) == (math.inf, math.inf)
    soon = [run("adam", 0, [9.0, 1.0])]
    assert profiles.middle_reached(soon, PERPLEXITY, 1.0) == (20, 4.0)
