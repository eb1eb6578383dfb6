"""Pairs take turns, round by round; those that refuse are skipped. No test looks at a real time."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from hvadam_bench.studies._pairs import (
    MOST_STEPS,
    Pair,
    Paired,
    Quartiles,
    Skip,
    Timed,
    no_garbage_collection,
    race,
    race_all,
    warm_up,
)


def test_quartiles() -> None:
    assert Quartiles.of([5.0, 1.0, 2.0, 4.0, 3.0]) == Quartiles(2.0, 3.0, 4.0)
    assert Quartiles.of([1.0, 2.0]) == Quartiles(1.25, 1.5, 1.75)
    assert Quartiles.of([7.0]) == Quartiles(7.0, 7.0, 7.0)


def test_ratios_are_within_a_round() -> None:
    found = Paired((2.0, 4.0, 9.0), (1.0, 2.0, 3.0))
    assert found.ratios == (2.0, 2.0, 3.0)
    assert found.ratio == Quartiles(2.0, 2.0, 2.5)


class Noted:
    """A trial that notes in a list when it runs and when it is closed."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name, self.notes = name, notes

    def group(self, threads: int | None) -> tuple[str, int | None]:
        self.notes.append(self.name)
        return self.name, threads

    def close(self) -> None:
        self.notes.append(f"{self.name} closed")


def test_every_round_goes_through_all_pairs_which_take_turns_in_being_first() -> None:
    notes: list[str] = []
    a, b, r = (Noted(name, notes) for name in "abr")
    told: list[tuple[str, float]] = []
    pairs = [Pair(one.name, lambda one=one: one.group(1), lambda: r.group(1)) for one in (a, b)]
    found = race(pairs, 2, lambda doing, share: told.append((doing, share)), share=0.5)
    assert "".join(notes) == "rarb" + "arbr"
    assert found == [((("a", 1),) * 2, (("r", 1),) * 2), ((("b", 1),) * 2, (("r", 1),) * 2)]
    assert told[0] == ("a, round 1", 0.0)
    assert sum(share for _, share in told) == pytest.approx(0.5)


def test_batches_are_closed_and_who_refuses_is_skipped() -> None:
    notes: list[str] = []

    def refuse() -> Any:
        raise ValueError("not\n here")

    told: list[float] = []
    skipped, timed = race_all(
        {"a": lambda: Noted("a", notes), "odd": refuse, "b": lambda: Noted("b", notes)},
        Noted("r", notes),
        rounds=1,
        at_once=2,
        counts=[1, 2],
        on_progress=lambda doing, share: told.append(share),
    )
    assert skipped == (Skip("odd", "not here"),)
    assert [one[:1] + one[2:] for one in timed] == [
        (name, count, (((name, count),), (("r", count),))) for name in "ab" for count in (1, 2)
    ]
    assert all(isinstance(one, Timed) for one in timed)
    assert notes == [*"rara", "a closed", *"rbrb", "b closed", "r closed"]
    assert sum(told) == pytest.approx(1.0)


def test_a_group_takes_as_long_as_it_should() -> None:
    taken: list[int] = []

    def run(steps: int) -> float:
        taken.append(steps)
        return 4.0 / len(taken)  # 4, 2, 4/3 seconds

    assert warm_up(run, 3, 4.0) == 3
    assert taken == [1, 1, 1]
    assert warm_up(lambda steps: 9.0, 1, 0.1) == 1
    assert warm_up(lambda steps: 0.0, 3, 0.1) == MOST_STEPS


def test_the_collector_rests_and_is_what_it_was() -> None:
    with no_garbage_collection():
        assert not gc.isenabled()
        with no_garbage_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
