"""The whole evidence: what counts, what is not finished, that it needs no runs; the claims."""

from __future__ import annotations

import dataclasses
import json
from base64 import b64decode, b64encode
from pathlib import Path

from made_evidence import fill, minibatch, smooth, told

from hvadam_bench.running.records import Store
from hvadam_bench.studies import Place
from hvadam_bench.studies import _recipes as recipes
from hvadam_bench.studies._results import from_json, load, save, to_json
from hvadam_bench.studies._words import (
    FAILS,
    HOLDS,
    PARTLY,
    PARTLY_VACUOUS,
    UNTESTED,
    VACUOUS,
)
from hvadam_bench.studies.evidence.describe import Plain
from hvadam_bench.studies.evidence.measure import compute, judge_claims, measure, store_of
from hvadam_bench.studies.evidence.plan import AS_MUCH, CONTROL, plan
from hvadam_bench.studies.theory import page as theory_page
from hvadam_bench.studies.theory.result import NONCONVEX, REGRET, Theory
from hvadam_bench.studies.valley.result import Comparison

RESULTS = Path(__file__).parents[4] / "results"


def test_flip_the_records_and_the_counts_flip(good: Plain, bad: Plain) -> None:
    for evidence, verdict in ((good, "ahead"), (bad, "behind")):
        for suite in (evidence["smooth"], evidence["minibatch"]):
            assert suite["standings"]["reference"][verdict] == 2
            assert suite["standings"]["family"][verdict] == 2
            assert sum(suite["standings"]["reference"].values()) == 2
        assert evidence["smooth"]["standings"]["control"][verdict] == 2
        assert evidence["smooth"]["standings"]["momentum"][verdict] == 2
        assert "control" not in evidence["minibatch"]["standings"]
    assert good["smooth"]["family"] == ["adam", CONTROL, "nadam"]


def test_what_is_not_finished_is_named_and_counts_nowhere(tmp_path: Path) -> None:
    planned_ones = [smooth("heat_pinn"), smooth("two_spirals"), smooth("matrix_factorization")]
    fill(tmp_path, {"smooth": planned_ones[:2]})
    store = store_of(tmp_path, "smooth")
    lost = next(
        run for run in store if run.config.task == "two_spirals" and run.config.contender == "sgd"
    )
    store.path(lost.config).unlink()
    evidence = told(tmp_path, {"smooth": planned_ones})
    assert [task["task"] for task in evidence["smooth"]["tasks"]] == ["heat_pinn"]
    assert sum(evidence["smooth"]["standings"]["reference"].values()) == 1
    assert sum(evidence["smooth"]["best"].values()) == 1
    cut = {one["task"]: (one["finished"], one["of"]) for one in evidence["smooth"]["unfinished"]}
    assert cut == {"two_spirals": (5, 6), "matrix_factorization": (0, 6)}


def test_nothing_finished_is_evidence_too(tmp_path: Path) -> None:
    evidence = told(tmp_path, {"smooth": [smooth()]})
    assert evidence["smooth"]["tasks"] == evidence["noise"]["doses"] == []
    assert evidence["smooth"]["standings"] == {}
    assert evidence["noise"]["rule"] is None


def test_the_evidence_comes_back_from_its_json(good: Plain) -> None:
    plain = json.loads(json.dumps(to_json(good), allow_nan=False))
    assert from_json(dict, plain) == good


def test_the_evidence_alone_is_computed_without_runs(tmp_path: Path) -> None:
    """The place cannot run sweeps; new records are read, and nothing is trained."""
    planned = plan(steps=("evidence",))
    found = measure(planned, Place(tmp_path, tmp_path / "runs"))
    assert found.keys() == {"evidence"}
    assert found["evidence"]["runs"] == 0
    assert len(found["evidence"]["smooth"]["unfinished"]) == 8


def test_profiles_are_of_those_on_every_task(good: Plain) -> None:
    suite = good["smooth"]
    assert set(suite["profiles"]) == {"adam", CONTROL, "nadam", "sgd", "hvadam", AS_MUCH}
    assert suite["scores"]["hvadam"] == 1 > suite["scores"]["nadam"]


def test_baselines_and_pictures_join_the_tasks(tmp_path: Path) -> None:
    studies = {"minibatch": [minibatch(seeds=1)], "smooth": [smooth(seeds=1)]}
    fill(tmp_path, studies)
    store = Store(store_of(tmp_path, "smooth").folder)
    for run in list(store):
        drawn = {
            "samples-0000000.png": b"first",
            "samples-0000750.png": run.config.entrant.encode(),
        }
        store.put(dataclasses.replace(run, artifacts=tuple(drawn)), drawn)
    results = tmp_path / "results"
    results.mkdir()
    one = {"method": "counting", "metric": "accuracy", "valid": 50.0, "test": 51.0}
    (results / "baselines.json").write_text(
        json.dumps({"scale": "laptop", "of": {"digits_cnn": one}})
    )
    evidence = compute(tmp_path, results, studies)
    [digits] = evidence["minibatch"]["tasks"]
    assert digits["baseline"] == {"method": "counting", "value": 51.0}
    [task] = evidence["smooth"]["tasks"]
    assert {name: b64decode(one["picture"] or "") for name, one in task["contenders"].items()} == {
        name: name.encode() for name in task["contenders"]
    }
    # Packed records come without pictures: those of the last evidence stay.
    save(evidence, results / "evidence.json")
    for path in list(store.folder.rglob("*.png")):
        path.unlink()
    [again] = compute(tmp_path, results, studies)["smooth"]["tasks"]
    assert again["contenders"]["adam"]["picture"] == b64encode(b"adam").decode()


def test_trainings_are_not_testable_and_name_a_recipe_that_there_is() -> None:
    untested = [one for one in judge_claims(RESULTS) if one["verdict"] == UNTESTED]
    assert len(untested) == 9
    words = {HOLDS, PARTLY, FAILS, UNTESTED, VACUOUS, PARTLY_VACUOUS}
    assert {one["verdict"] for one in judge_claims(RESULTS)} <= words
    named = [word for one in untested for word in one["note"].split("`") if "sweep" in word]
    assert {word.split()[-1] for word in named} <= set(recipes.names())


def test_toy_functions_and_theorems_have_the_verdicts_of_their_studies() -> None:
    found = {one["claim"]: one for one in judge_claims(RESULTS)}
    words = load(Comparison, RESULTS / "valley.json").functions_by_verdict("common", "lowest")
    lowest = found["The lowest loss on the toy functions"]
    for word, names in words.items():
        assert f"{word} on {', '.join(names)}" in lowest["note"]
    theory = load(Theory, RESULTS / "theory.json")
    told = theory_page.render_page(theory)
    for theorem, standing in theory.standings.items():
        [claim] = [one for one in found.values() if one["where"] == theorem]
        assert f"{standing.within} cases" in claim["note"]
        assert (f"vacuous in {standing.vacuous}:" in claim["note"]) is (standing.vacuous.count > 0)
        assert claim["verdict"] == standing.verdict
        assert f"| {theorem} | **{claim['verdict']}** | {standing.within} |" in told


def test_a_true_bound_that_says_nothing_is_vacuous(tmp_path: Path) -> None:
    """Appendix D's gets below the trivial bound after 1e18 steps, C's does in 2 of 8 cases."""
    measured = load(Theory, RESULTS / "theory.json")
    assert measured.standings[REGRET].verdict == PARTLY_VACUOUS
    assert measured.standings[REGRET].vacuous == (6, 8)
    assert measured.standings[NONCONVEX].verdict == VACUOUS
    assert "**The bound: vacuous.**" in theory_page.render_page(measured)
    # With constants that let every gradient be long the same bounds would say something.
    plain = json.loads((RESULTS / "theory.json").read_text(encoding="utf-8"))
    for one in plain["nonconvex"]["problems"]:
        one["trivial"] = 1e13
    (tmp_path / "theory.json").write_text(json.dumps(plain))
    [claim] = [one for one in judge_claims(tmp_path) if one["where"] == NONCONVEX]
    assert (claim["verdict"], "vacuous" in claim["note"]) == (HOLDS, False)
    useful = load(Theory, tmp_path / "theory.json")
    assert "**The bound: holds.**" in theory_page.render_page(useful)


def test_without_these_studies_nothing_is_said_of_them(tmp_path: Path) -> None:
    assert {one["verdict"] for one in judge_claims(tmp_path)} == {UNTESTED}
