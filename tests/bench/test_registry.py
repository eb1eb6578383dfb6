"""Contenders and tasks of others: found in folders and packages, named when they cannot be used."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from made_engines import Inline

from hvadam.__main__ import main
from hvadam_bench import contenders, tasks
from hvadam_bench.errors import RefusedError
from hvadam_bench.registry import PLUGINS
from hvadam_bench.running import files
from hvadam_bench.running.records import Store
from hvadam_bench.sweeping import engines, recipes
from hvadam_bench.sweeping.search import narrowed

HOWTO = Path(__file__).parents[2] / "docs" / "howto" / "compare-optimizers.md"
# What the guide shows, by the name of the file.
EXAMPLES = dict(
    re.findall(r"```python\n# mybench/(\w+\.py)\n(.*?)```", HOWTO.read_text("utf-8"), re.DOTALL)
)


@pytest.fixture(autouse=True)
def _variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the variable that commands set as it was."""
    monkeypatch.setenv(PLUGINS, "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the guide's example."""
    made = tmp_path / "mybench"
    made.mkdir()
    for name, text in EXAMPLES.items():
        (made / name).write_text(text)
    return made


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")  # Ray's own
@pytest.mark.filterwarnings("ignore::FutureWarning")  # Ray's own too
@pytest.mark.parametrize(
    "engine",
    ["here", *(pytest.param(name, marks=pytest.mark.slow) for name in ("local", "ray"))],
)
def test_the_guides_example_is_run_swept_and_reported(
    engine: str,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if engine == "ray":
        pytest.importorskip("ray")
    if engine == "here":
        monkeypatch.setattr(files.os, "fsync", lambda file: None)  # hundreds of them take seconds
        monkeypatch.setattr(engines, "make_engine", lambda name, store, *_: Inline(store))
    store = Store(tmp_path / "runs")
    where = ["--plugins", str(folder), "--store", str(store.folder)]
    assert sorted(EXAMPLES) == ["nesterov.py", "sines.py"]
    assert main(["run", "sines", "nesterov", "--scale", "smoke", *where]) == 0
    [record] = store
    assert (record.config.task, record.config.contender, record.status) == (
        *("sines", "nesterov"),
        "done",
    )
    assert main(["tasks", "--plugins", str(folder)]) == 0
    assert "A sine" in capsys.readouterr().out
    sweep = ["sweep", "sines", "--contenders", "adam,nesterov", "--scale", "smoke", "--seeds", "1"]
    if engine != "here":
        sweep += ["--engine", engine]
    assert main([*sweep, "--workers", "1", *where]) == 0
    assert "Nesterov" in capsys.readouterr().out
    ran = {(run.config.task, run.config.contender, run.role) for run in store if run.study}
    assert ran == {
        ("sines", name, role) for name in ("adam", "nesterov") for role in ("tuning", "judged")
    }
    page = tmp_path / "report.html"
    assert main(["report", "--out", str(page), *where]) == 0
    assert "Nesterov" in page.read_text("utf-8")


def test_a_recipe_takes_whoever_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLUGINS, str(folder))
    studies = recipes.get("demo").studies
    for study, joined in zip(studies, narrowed(studies, contenders=["nesterov"]), strict=True):
        [arm] = joined.arms()
        assert (arm.study.task, arm.entry.contender) == (study.task, "nesterov")
        assert len(arm.trials) == len(study.arms()[0].trials)  # as many as the others have


def test_files_of_a_folder_may_import_each_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "_rates.py").write_text("RATES = (0.5,)\n")
    (folder / "other.py").write_text(
        "from ._rates import RATES\n"
        + EXAMPLES["nesterov.py"].replace('"nesterov"', '"other"').replace("(1e-3, ", "(*RATES, ")
    )
    before = contenders.names()
    monkeypatch.setenv(PLUGINS, os.pathsep.join([str(folder), str(folder / "..")]))
    assert contenders.names() == [*before, "nesterov", "other"]
    assert contenders.get("other").search["lr"][0] == 0.5
    assert "sines" in tasks.names()
    monkeypatch.setenv(PLUGINS, "")
    assert contenders.names() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nowhere", "mine.py cannot be loaded: ModuleNotFoundError: No module named 'now"),
        ("def build(:", "mine.py cannot be loaded: SyntaxError: invalid syntax"),
        ("SPEC = 3", "SPEC of .*mine.py must be of the class OptimizerSpec, got int"),
        (
            EXAMPLES["nesterov.py"].replace('"nesterov"', '"adam"'),
            "contender of .*mine.py is named 'adam', as is that of hvadam_bench.contenders.adam",
        ),
    ],
    ids=["import", "syntax", "class", "clash"],
)
def test_what_cannot_be_used_is_named_in_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(text)
    for command in (["run", "digits_mlp", "adam"], ["sweep", "demo", "--contenders", "adam"]):
        arguments = ["--store", str(tmp_path / "runs"), "--plugins", str(tmp_path)]
        assert main([*command, *arguments]) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert re.search(message, line), line
    assert not (tmp_path / "runs").exists()


def test_a_folder_that_is_not_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "none"
    assert main(["tasks", "--plugins", str(missing)]) == 2
    assert f"there is no folder {missing}." in capsys.readouterr().err
    monkeypatch.setenv(PLUGINS, str(missing))
    assert main(["tasks"]) == 2
    assert "HVADAM_PLUGINS names" in capsys.readouterr().err


def install(folder: Path, points: str) -> None:
    """Lay out a package as pip does, with entry points."""
    for name, text in EXAMPLES.items():
        (folder / f"their_{name}").write_text(text)
    about = folder / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(points)


def test_installed_packages_bring_theirs_by_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        tmp_path,
        "[hvadam_bench.contenders]\nnesterov = their_nesterov:SPEC\n"
        "[hvadam_bench.tasks]\nsines = their_sines:TASK\n",
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert contenders.names()[-1] == "nesterov"
    assert "their_nesterov" not in sys.modules  # read when asked for
    assert contenders.get("nesterov").label == "Nesterov"
    assert tasks.get("sines").title == "A sine"


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ("adam = their_nesterov:SPEC", "named 'adam', as is that of hvadam_bench.contenders.adam"),
        ("mine = their_nesterov:SPEC", "'mine' and the contender 'nesterov' of .* one name"),
        ("mine = their_nesterov:build", "must be of the class OptimizerSpec, got function"),
        ("mine = nowhere:SPEC", r"nowhere:SPEC \(theirs\) cannot be loaded: ModuleNotFound"),
    ],
    ids=["clash", "name", "class", "import"],
)
def test_entry_points_that_cannot_be_used_are_named(
    point: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, f"[hvadam_bench.contenders]\n{point}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RefusedError, match=message):
        contenders.get("mine")
