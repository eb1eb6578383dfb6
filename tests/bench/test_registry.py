"""Contenders and tasks of others: found in folders and packages, named when they cannot be used."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from interrupted import KilledError, Killer
from made_sweeps import Inline

from hvadam.__main__ import main
from hvadam_bench import contenders, tasks
from hvadam_bench.registry import PLUGINS, RefusedError, code_of
from hvadam_bench.running import files
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.running.runner import run
from hvadam_bench.studies.demo.plan import RECIPE
from hvadam_bench.sweeping import engines
from hvadam_bench.sweeping.search import Contest, Entry, narrowed

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


def test_a_plugin_is_searched_as_it_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def trials(search: str, **study: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        own = folder.with_name(f"search{crc32(search.encode())}")
        own.mkdir(exist_ok=True)
        text = EXAMPLES["nesterov.py"].replace("build=build,", f"build=build, search={search},")
        (own / "nesterov.py").write_text(text)
        monkeypatch.setenv(PLUGINS, str(own))
        arms = Contest("digits_mlp", [Entry("adam"), Entry("nesterov")], **study).arms()
        adam, nesterov = ([trial.options for trial in arm.trials] for arm in arms)
        return adam, nesterov

    adam, nesterov = trials('{"lr": (.008, .009, .01, .011), "momentum": (.8, .9)}')
    assert nesterov == [
        {"lr": lr, "momentum": momentum}
        for lr in (0.008, 0.009, 0.01, 0.011)
        for momentum in (0.8, 0.9)
    ]
    assert len({options["lr"] for options in adam}) == 8  # as many
    adam, nesterov = trials('{"momentum": (.8, .9)}')
    assert len(adam) == len(nesterov) == 14
    assert {options["momentum"] for options in nesterov} == {0.8, 0.9}
    assert len({options["lr"] for options in nesterov}) == 7
    adam, nesterov = trials('{"lr": (.5, .25)}')
    assert (len(adam), nesterov) == (7, [{"lr": 0.5}, {"lr": 0.25}])  # fewer, as it wants it
    adam, nesterov = trials('{"lr": (.5, .25)}', trials=1)
    assert nesterov == [{"lr": 0.01}]  # nobody tunes


def test_a_recipe_takes_whoever_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLUGINS, str(folder))
    studies = RECIPE.studies
    for study, joined in zip(studies, narrowed(studies, contenders=["nesterov"]), strict=True):
        [arm] = joined.arms()
        assert (arm.contest.task, arm.entry.contender) == (study.task, "nesterov")
        assert len(arm.trials) == len(study.arms()[0].trials)  # as many as the others have


def test_files_of_a_folder_may_import_each_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "_rates.py").write_text("RATES = (0.5,)\n")
    (folder / "other.py").write_text(
        "from ._rates import RATES\n"
        + EXAMPLES["nesterov.py"]
        .replace('"nesterov"', '"other"')
        .replace('"lr": 0.01', '"lr": RATES[0]')
    )
    before = contenders.names()
    monkeypatch.setenv(PLUGINS, os.pathsep.join([str(folder), str(folder / "..")]))
    assert contenders.names() == [*before, "nesterov", "other"]
    assert contenders.get("other").defaults["lr"] == 0.5
    assert "sines" in tasks.names()
    monkeypatch.setenv(PLUGINS, "")
    assert contenders.names() == before


def edited(folder: Path, old: str, new: str) -> Path:
    """Return a copy of a folder of plugins with an edit in its task."""
    copy = folder.with_name(f"{folder.name}-{crc32(new.encode())}")
    shutil.copytree(folder, copy)
    text = (copy / "sines.py").read_text()
    assert old in text
    (copy / "sines.py").write_text(text.replace(old, new))
    return copy


def test_an_edited_plugin_makes_its_records_again(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(files.os, "fsync", lambda file: None)
    monkeypatch.setattr(engines, "make_engine", lambda name, store, *_: Inline(store))
    store = Store(tmp_path / "runs")
    where = ["--store", str(store.folder), "--plugins"]
    one = ["run", "sines", "adam", "--scale", "smoke", *where]
    assert main([*one, str(folder)]) == 0
    [first] = store
    assert set(first.basis["code"]) == {"task"}  # Adam is ours
    assert main([*one, str(folder)]) == 0
    assert "already recorded" in capsys.readouterr().out
    later = edited(folder, "torch.nn.Tanh()", "torch.nn.ReLU()")
    assert main([*one, str(later)]) == 0
    said = capsys.readouterr().out.splitlines()
    path = store.path(first.config).relative_to(store.folder)
    assert said[0] == f"{path} was made by another version of sines.py: run again"
    [second] = store
    assert second.test != first.test
    assert second.basis["code"] != first.basis["code"]
    # The sweep says what it discards, and makes it again.
    sweep = ["sweep", "sines", "--contenders", "adam", "--scale", "smoke", "--seeds", "1", *where]
    assert main([*sweep, str(later)]) == 0
    made = sum(bool(record.study) for record in store)
    capsys.readouterr()
    assert main([*sweep, str(folder)]) == 0
    said = capsys.readouterr().out.splitlines()[0]
    assert said == (
        f"sweep: {made + 1} records of sines were made by another version of sines.py: "
        "run again as needed"
    )
    # The one of `run` was not needed; a report leaves it out, and names the mix without the file.
    report = ["report", "--out", str(tmp_path / "report.html"), *where]
    assert main([*report, str(folder)]) == 0
    assert "1 record of sines was made by another version of sines.py: left out" in (
        capsys.readouterr().err
    )
    monkeypatch.setenv(PLUGINS, "")
    assert main(report[:-1]) == 0
    assert f"the task sines are of 2 versions of its code ({made}, 1)" in capsys.readouterr().err


def test_a_checkpoint_of_other_code_is_not_gone_on_with(
    folder: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = RunConfig("sines", "nesterov", "smoke")
    monkeypatch.setenv(PLUGINS, str(folder))
    with pytest.raises(KilledError):
        run(asked, store, watcher=Killer(10))
    monkeypatch.setenv(PLUGINS, str(edited(folder, "Tanh()", "ReLU()")))
    with pytest.warns(UserWarning, match=r"is of another run \(code .*: the run starts over"):
        assert run(asked, store).status == "done"


def test_the_code_of_a_plugin_is_its_file_and_what_that_imports_of_its_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "deep").mkdir()
    sources = {
        "mine.py": "import os, json.decoder\nfrom ._layers import x\ndef f():\n    import plain\n",
        "_layers.py": "from . import deep\nfrom .deep.inner import y\n",
        "plain.py": "",
        "deep/__init__.py": "from .. import mine\n",
        "deep/inner.py": "from ..other_helper import z",
        "other_helper.py": "def broken(:",
        "unrelated.py": "",
        "json.py": "",
    }

    def code() -> str:
        return code_of(tmp_path / "mine.py")

    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    first = code()
    seen = set()
    for name, text in sources.items():
        (tmp_path / name).write_text(f"{text}# edited\n")
        if code() != first:
            seen.add(name)
        (tmp_path / name).write_text(text)
        assert code() == first
    assert seen == set(sources) - {"unrelated.py"}
    (tmp_path / "plain.py").write_bytes(b"a\r\n")
    windows = code()
    (tmp_path / "plain.py").write_bytes(b"a\n")
    assert code() == windows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import sys; sys.exit(7)", r"mine.py cannot be loaded: it calls sys.exit\(7\)"),
        (
            EXAMPLES["nesterov.py"].replace('"nesterov"', '"../secret"'),
            "the contender of .*mine.py must be a plain one, without a path in it, got '../secret'",
        ),
        (
            EXAMPLES["nesterov.py"].replace("build=build,", "build=build, search={'beta': (1,)},"),
            "nesterov: search names 'beta', which defaults does not",
        ),
        ("import nowhere", "mine.py cannot be loaded: ModuleNotFoundError: No module named 'now"),
        ("def build(:", "mine.py cannot be loaded: SyntaxError: invalid syntax"),
        ("SPEC = 3", "SPEC of .*mine.py must be of the class OptimizerSpec, got int"),
        (
            EXAMPLES["nesterov.py"].replace('"nesterov"', '"adam"'),
            "contender of .*mine.py is named 'adam', as is that of hvadam_bench.contenders.adam",
        ),
    ],
    ids=["exit", "path", "search", "import", "syntax", "class", "clash"],
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
