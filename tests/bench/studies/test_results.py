"""The JSON form of results: there and back, and what it refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pytest

from hvadam_bench.studies._results import from_json, to_json
from hvadam_bench.studies.scaling import page as scaling
from hvadam_bench.studies.speed.contenders import ADAM, EXACT


@dataclass(frozen=True)
class Inner:
    values: tuple[float, ...]
    ends: tuple[int, str]

    DERIVED: ClassVar = ("total",)

    @property
    def total(self) -> float:
        return sum(self.values)


@dataclass(frozen=True)
class Outer:
    first: Inner
    others: Mapping[str, tuple[Inner, ...]]
    maybe: Inner | None
    number: float | None


ONE = Inner((1.0, 2.5), (3, "x"))


@pytest.mark.parametrize("maybe", [None, ONE])
def test_what_is_written_is_read_back(maybe: Inner | None) -> None:
    outer = Outer(ONE, {"a": (ONE, ONE), "b": ()}, maybe, -math.inf)
    text = json.dumps(to_json(outer), allow_nan=False)
    assert from_json(Outer, json.loads(text)) == outer
    assert json.loads(text)["number"] == "-inf"
    assert to_json(from_json(Outer, json.loads(text))) == json.loads(text)


def test_what_follows_from_the_fields_is_written_and_not_read() -> None:
    plain = to_json(ONE)
    assert plain == {"values": [1.0, 2.5], "ends": [3, "x"], "total": 3.5}
    assert from_json(Inner, {**plain, "total": 99.0}) == ONE


@pytest.mark.parametrize(
    "plain",
    [{"values": []}, {"values": [], "ends": [1, "x"], "more": 1}],
    ids=["lacks", "has more"],
)
def test_another_form_is_refused_with_its_fields(plain: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"Inner: .*(ends|more)"):
        from_json(Inner, plain)


def test_tuples_have_their_length() -> None:
    with pytest.raises(ValueError, match="ends"):
        from_json(Inner, {"values": [], "ends": [1, "x", 2]})


# The worked example beside what the speed study counts.
def test_the_worked_example_moves_what_the_speed_study_counts() -> None:
    worked = {one.name: one for one in scaling.WORKED}
    for name, streams in (("AdamW", ADAM), ("HVAdam", EXACT)):
        assert worked[name].moved() == streams.bytes(worked[name].state)
    assert worked["HVAdam, bfloat16 state"].moved() == EXACT.bytes(6)
    seconds = worked["AdamW"].seconds(scaling.BANDWIDTH / 28)
    assert seconds == pytest.approx(1.0)
