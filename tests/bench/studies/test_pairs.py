"""Pairs take turns, round by round; those that refuse are skipped. No test looks at a real time."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from hvadam_bench.studies._pairs import (
    MOST_STEPS,
    Field,
    Pair,
    Quartiles,
    no_garbage_collection,
    race,
    race_all,
    warm_up,
)


def test_quartiles() -> None:
    assert Quartiles.of([5.0, 1.0, 2.0, 4.0, 3.0]) == Quartiles(2.0, 3.0, 4.0)
    assert Quartiles.of([1.0, 2.0]) == Quartiles(1.25, 1.5, 1.75)
    assert Quartiles.of([7.0]) == Quartiles(7.0, 7.0, 7.0)


class Noted:
    """A trial that notes in a list when it runs and when it is closed."""

    def __init__(self, name: str, notes: list[str], seconds: float = 1.0) -> None:
        self.name, self.notes, self.seconds = name, notes, seconds
        self.facts: dict[str, Any] = {"colour": f"{name}'s"}

    def group(self, threads: int | None) -> dict[str, float]:
        self.notes.append(self.name)
        return {"seconds": self.seconds * (threads or 1), "inside": 0.5}

    def close(self) -> None:
        self.notes.append(f"{self.name} closed")


def test_every_round_goes_through_all_pairs_which_take_turns_in_being_first() -> None:
    notes: list[str] = []
    a, b, r = (Noted(name, notes) for name in "abr")
    told: list[tuple[str, float]] = []
    pairs = [Pair(one.name, lambda one=one: one.group(1), lambda: r.group(1)) for one in (a, b)]
    found = race(pairs, 2, lambda doing, share: told.append((doing, share)), share=0.5)
    assert "".join(notes) == "rarb" + "arbr"
    assert found == [((a.group(1),) * 2, (r.group(1),) * 2), ((b.group(1),) * 2, (r.group(1),) * 2)]
    assert told[0] == ("a, round 1", 0.0)
    assert sum(share for _, share in told) == pytest.approx(0.5)


def test_batches_are_closed_and_who_refuses_is_skipped() -> None:
    notes: list[str] = []

    def refuse(reference: Any) -> Any:
        raise ValueError("not\n here")

    told: list[float] = []
    makers = {
        "a": lambda reference: Noted("a", notes, 2.0 * reference.seconds),
        "odd": refuse,
        "b": lambda reference: Noted("b", notes, 3.0),
    }
    field = Field({"name": "tiny", "title": "small"}, 1.0, lambda: Noted("r", notes), makers, 2)
    [found] = race_all([field], 1, lambda doing, share: told.append(share), [1, 2])
    assert (found["name"], found["title"]) == ("tiny", "small")
    assert found["skipped"] == [{"contender": "odd", "reason": "not here"}]
    assert [
        (one["contender"], one["threads"], one["seconds"], one["reference_seconds"])
        for one in found["results"]
    ] == [
        *[("a", n, [2.0 * n], [1.0 * n]) for n in (1, 2)],
        *[("b", n, [3.0 * n], [1.0 * n]) for n in (1, 2)],
    ]
    first = found["results"][0]
    assert first["colour"] == "a's"
    assert first["inside"] == first["reference_inside"] == [0.5]
    assert first["ratio"] == {"q1": 2.0, "median": 2.0, "q3": 2.0}
    assert first["milliseconds"] == 2000.0
    assert notes == [*"rara", "a closed", *"rbrb", "b closed", "r closed"]
    assert sum(told) == pytest.approx(1.0)


def test_fields_share_the_work_by_their_cost() -> None:
    told: list[tuple[str, float]] = []
    fields = [
        Field({"name": name}, cost, lambda: Noted("r", []), {"a": lambda _: Noted("a", [])}, 1)
        for name, cost in (("small", 1.0), ("large", 3.0))
    ]
    small, large = race_all(fields, 1, lambda *what: told.append(what))
    assert [share for _, share in told if share] == [0.25, 0.75]
    assert "threads" not in small["results"][0] | large["results"][0]


def test_a_group_takes_as_long_as_it_should() -> None:
    taken: list[int] = []

    def run(steps: int) -> float:
        taken.append(steps)
        return 4.0 / len(taken)  # 4, 2, 4/3 seconds

    assert warm_up(run, 4.0) == 3
    assert taken == [1, 1, 1]
    assert warm_up(lambda steps: 9.0, 0.1) == 1
    assert warm_up(lambda steps: 0.0, 0.1) == MOST_STEPS


def test_the_collector_rests_and_is_what_it_was() -> None:
    with no_garbage_collection():
        assert not gc.isenabled()
        with no_garbage_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
