"""Claims are judged on the paper's own ground, and never on another."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from hvadam_bench.studies import _recipes as recipes
from hvadam_bench.studies._results import load, save
from hvadam_bench.studies._words import (
    FAILS,
    HOLDS,
    PARTLY,
    PARTLY_VACUOUS,
    UNTESTED,
    VACUOUS,
)
from hvadam_bench.studies.evidence.claims import judge
from hvadam_bench.studies.theory import page
from hvadam_bench.studies.theory.result import NONCONVEX, REGRET, Theory
from hvadam_bench.studies.valley.result import Comparison

RESULTS = Path(__file__).parents[4] / "results"


def test_trainings_are_not_testable_and_name_a_recipe_that_there_is() -> None:
    untested = [one for one in judge(RESULTS) if one.verdict == UNTESTED]
    assert len(untested) == 9
    words = {HOLDS, PARTLY, FAILS, UNTESTED, VACUOUS, PARTLY_VACUOUS}
    assert {one.verdict for one in judge(RESULTS)} <= words
    named = [word for one in untested for word in one.note.split("`") if "sweep" in word]
    assert {word.split()[-1] for word in named} <= set(recipes.names())


def test_toy_functions_and_theorems_have_the_verdicts_of_their_studies() -> None:
    found = {one.claim: one for one in judge(RESULTS)}
    words = load(Comparison, RESULTS / "valley.json").functions_by_verdict("common", "lowest")
    lowest = found["The lowest loss on the toy functions"]
    for word, names in words.items():
        assert f"{word} on {', '.join(names)}" in lowest.note
    theory = load(Theory, RESULTS / "theory.json")
    told = page.render_page(theory)
    for theorem, standing in theory.standings.items():
        [claim] = [one for one in found.values() if one.where == theorem]
        assert f"{standing.within} cases" in claim.note
        assert (f"vacuous in {standing.vacuous}:" in claim.note) is (standing.vacuous.count > 0)
        assert claim.verdict == standing.verdict
        assert f"| {theorem} | **{claim.verdict}** | {standing.within} |" in told


def test_a_true_bound_that_says_nothing_is_vacuous(tmp_path: Path) -> None:
    """Appendix D's gets below the trivial bound after 1e18 steps, C's does in 2 of 8 cases."""
    measured = load(Theory, RESULTS / "theory.json")
    assert measured.standings[REGRET].verdict == PARTLY_VACUOUS
    assert measured.standings[REGRET].vacuous == (6, 8)
    assert measured.standings[NONCONVEX].verdict == VACUOUS
    assert "**The bound: vacuous.**" in page.render_page(measured)
    # With constants that let every gradient be long the same bounds would say something.
    problems = [{**one, "trivial": 1e13} for one in measured.nonconvex["problems"]]
    useful = dataclasses.replace(measured, nonconvex={**measured.nonconvex, "problems": problems})
    save(useful, tmp_path / "theory.json")
    [claim] = [one for one in judge(tmp_path) if one.where == NONCONVEX]
    assert (claim.verdict, "vacuous" in claim.note) == (HOLDS, False)
    assert "**The bound: holds.**" in page.render_page(useful)


def test_without_these_studies_nothing_is_said_of_them(tmp_path: Path) -> None:
    assert {one.verdict for one in judge(tmp_path)} == {UNTESTED}
