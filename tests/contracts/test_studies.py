"""Every study: its smoke plan runs, its results go to JSON and back, its pages render."""

from __future__ import annotations

import filecmp
import json
from pathlib import Path

import pytest
from rich.console import Console

from hvadam_bench import studies
from hvadam_bench.cli.showing import gather_and_show
from hvadam_bench.studies import Place
from hvadam_bench.studies._results import from_json, to_json

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", studies.names())
def test_a_study_says_what_it_does(name: str) -> None:
    study = studies.get(name)
    assert study.name == name
    assert study.about[0].isupper()
    assert study.about.endswith(".")
    assert study.kinds


@pytest.mark.parametrize("name", studies.names())
def test_committed_results_are_read_and_written_as_they_are(name: str) -> None:
    study = studies.get(name)
    for stem, result in study.read(ROOT).items():
        plain = json.loads((ROOT / "results" / f"{stem}.json").read_text(encoding="utf-8"))
        assert to_json(result) == plain
        assert from_json(study.kinds[stem], plain) == result


@pytest.mark.parametrize("name", studies.names())
def test_committed_pages_are_what_the_results_give(name: str, tmp_path: Path) -> None:
    study = studies.get(name)
    (tmp_path / "README.md").write_bytes((ROOT / "README.md").read_bytes())
    for path in study.render(study.read(ROOT), tmp_path):
        if path.suffix in (".md", ".html"):
            committed = ROOT / path.relative_to(tmp_path)
            assert filecmp.cmp(path, committed, shallow=False), f"{path.name} differs"


@pytest.mark.slow
@pytest.mark.parametrize("name", studies.names())
def test_a_smoke_plan_runs(name: str, tmp_path: Path) -> None:
    study = studies.get(name)
    quiet = Console(quiet=True)
    place = Place(tmp_path, tmp_path / "runs", sweep=lambda own: gather_and_show(own, 1, quiet))
    found = study.measure(study.plan(smoke=True), place)
    assert found.keys() <= study.kinds.keys()
    for stem, result in found.items():
        plain = json.loads(json.dumps(to_json(result), allow_nan=False))
        assert from_json(study.kinds[stem], plain) == result
    (tmp_path / "README.md").write_bytes((ROOT / "README.md").read_bytes())
    assert study.write(found, tmp_path)
