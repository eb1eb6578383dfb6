"""Claims are judged on the paper's own ground, and never on another."""

from __future__ import annotations

from pathlib import Path

from hvadam_bench.studies.evidence.claims import FAILS, HOLDS, PARTLY, UNTESTED, judge
from hvadam_bench.studies.theorems.result import Theory
from hvadam_bench.studies.toy_functions.result import Comparison
from hvadam_bench.sweeping import recipes

RESULTS = Path(__file__).parents[4] / "results"


def test_trainings_are_not_testable_and_name_a_recipe_that_there_is() -> None:
    untested = [one for one in judge(RESULTS) if one.verdict == UNTESTED]
    assert len(untested) == 9
    assert {one.verdict for one in judge(RESULTS)} <= {HOLDS, PARTLY, FAILS, UNTESTED}
    named = [word for one in untested for word in one.note.split("`") if "sweep" in word]
    assert {word.split()[-1] for word in named} <= set(recipes.names())


def test_toy_functions_and_theorems_have_the_verdicts_of_their_studies() -> None:
    found = {one.claim: one for one in judge(RESULTS)}
    words = Comparison.load(RESULTS / "valley.json").functions_by_verdict("common", "lowest")
    lowest = found["The lowest loss on the toy functions"]
    for word, names in words.items():
        assert f"{word} on {', '.join(names)}" in lowest.note
    tallies = Theory.load(RESULTS / "theory.json").tallies
    for theorem, met in tallies.items():
        [claim] = [one for one in found.values() if one.where == theorem]
        assert str(met) in claim.note
        assert (claim.verdict == HOLDS) is (met.count == met.of)


def test_without_these_studies_nothing_is_said_of_them(tmp_path: Path) -> None:
    assert {one.verdict for one in judge(tmp_path)} == {UNTESTED}
