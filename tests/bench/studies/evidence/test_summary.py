"""The whole evidence: what counts, what is not finished, and its one JSON form."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import replace
from pathlib import Path

from made_evidence import fill, minibatch, smooth, told

from hvadam_bench.running.records import Store
from hvadam_bench.studies.evidence import summary
from hvadam_bench.studies.evidence.describe import AS_MUCH, CONTROL
from hvadam_bench.studies.evidence.parts import PARTS, planned, store_of
from hvadam_bench.studies.evidence.result import Evidence


def test_flip_the_records_and_the_counts_flip(good: Evidence, bad: Evidence) -> None:
    for evidence, verdict in ((good, "ahead"), (bad, "behind")):
        for suite in evidence.suites:
            assert suite.standings["reference"][verdict] == 2
            assert suite.standings["family"][verdict] == 2
            assert sum(suite.standings["reference"].values()) == 2
        assert evidence.smooth.standings["control"][verdict] == 2
        assert evidence.smooth.standings["momentum"][verdict] == 2
        assert "control" not in evidence.minibatch.standings
    assert good.smooth.family == ("adam", CONTROL, "nadam")


def test_what_is_not_finished_is_named_and_counts_nowhere(tmp_path: Path) -> None:
    planned_ones = [smooth("heat_pinn"), smooth("two_spirals"), smooth("matrix_factorization")]
    fill(tmp_path, {"smooth": planned_ones[:2]})
    store = store_of(tmp_path, "smooth")
    lost = next(
        run for run in store if run.config.task == "two_spirals" and run.config.contender == "sgd"
    )
    store.path(lost.config).unlink()
    evidence = told(tmp_path, {"smooth": planned_ones})
    assert [task.task for task in evidence.smooth.tasks] == ["heat_pinn"]
    assert sum(evidence.smooth.standings["reference"].values()) == 1
    assert sum(evidence.smooth.best.values()) == 1
    cut = {one.task: (one.finished, one.of) for one in evidence.smooth.unfinished}
    assert cut == {"two_spirals": (5, 6), "matrix_factorization": (0, 6)}


def test_nothing_finished_is_evidence_too(tmp_path: Path) -> None:
    evidence = told(tmp_path, {"smooth": [smooth()]})
    assert evidence.tasks == ()
    assert evidence.smooth.standings == {}
    assert evidence.noise.rule is None


def test_the_evidence_has_one_form_and_comes_back_from_it(tmp_path: Path, good: Evidence) -> None:
    path = tmp_path / "evidence.json"
    path.write_text(good.to_text(), encoding="utf-8")
    assert Evidence.load(path) == good
    assert Evidence.load(path).to_text() == good.to_text()


def test_profiles_are_of_those_on_every_task(good: Evidence) -> None:
    suite = good.smooth
    assert set(suite.profiles) == {"adam", CONTROL, "nadam", "sgd", "hvadam", AS_MUCH}
    assert suite.scores["hvadam"] == 1 > suite.scores["nadam"]


def test_baselines_and_pictures_join_the_tasks(tmp_path: Path) -> None:
    studies = {"minibatch": [minibatch(seeds=1)], "smooth": [smooth(seeds=1)]}
    fill(tmp_path, studies)
    store = Store(store_of(tmp_path, "smooth").folder)
    for run in list(store):
        drawn = {
            "samples-0000000.png": b"first",
            "samples-0000750.png": run.config.entrant.encode(),
        }
        store.put(replace(run, artifacts=tuple(drawn)), drawn)
    results = tmp_path / "results"
    results.mkdir()
    one = {"method": "counting", "metric": "accuracy", "valid": 50.0, "test": 51.0}
    (results / "baselines.json").write_text(
        json.dumps({"scale": "laptop", "of": {"digits_cnn": one}})
    )
    evidence = summary.compute(tmp_path, results, studies)
    [digits] = evidence.minibatch.tasks
    assert digits.baseline is not None
    assert (digits.baseline.method, digits.baseline.value) == ("counting", 51.0)
    [task] = evidence.smooth.tasks
    assert {name: b64decode(one.picture or "") for name, one in task.contenders.items()} == {
        name: name.encode() for name in task.contenders
    }
    # Packed records come without pictures: those of the last evidence stay.
    (results / "evidence.json").write_text(evidence.to_text(), encoding="utf-8")
    for path in list(store.folder.rglob("*.png")):
        path.unlink()
    [again] = summary.compute(tmp_path, results, studies).smooth.tasks
    assert again.contenders["adam"].picture == b64encode(b"adam").decode()


def test_the_plan_is_what_the_comparison_runs() -> None:
    studies = planned()
    assert tuple(studies) == PARTS
    assert len(studies["smooth"]) == 8
    assert len(studies["minibatch"]) == 4
    assert len(studies["noise"]) == 4 * 5
    for part, reference in summary.REFERENCES.items():
        for study in studies[part]:
            entrants = {entry.entrant for entry in study.entries}
            assert {reference, "hvadam"} <= entrants
            assert study.seeds == 10
