"""How commands end when they do not end well: one line, and a code that says which kind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_records import made_record

from hvadam.__main__ import main
from hvadam_bench.cli import showing
from hvadam_bench.data import download
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.studies.valley import measure as valley


def interrupt(*args: Any, **named: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("words", "module", "function", "kept"),
    [
        (["demo", "--steps", "3"], showing, "gather_and_show", "what is recorded in demo/runs"),
        (["run", "digits_mlp", "adam"], showing, "run_and_show", "checkpoint in runs"),
        (["sweep", "demo"], showing, "sweep_and_show", "what is recorded in runs"),
        (["evidence"], showing, "gather_and_show", "what is recorded in runs/studies"),
        (["valley", "--runs", "a b"], valley, "compare", "what is recorded in a b"),
        (["data", "get", "pydoc"], download, "obtain", "what has arrived in "),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)
def test_an_interrupt_says_what_is_kept_and_how_to_go_on(
    words: list[str],
    module: Any,
    function: str,
    kept: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, function, interrupt)
    assert main(words) == 130
    [line] = capsys.readouterr().err.splitlines()
    command = " ".join(["hvadam", *words]).replace("a b", "'a b'")
    assert line.startswith("hvadam: interrupted; kept: ")
    assert kept in line
    assert line.endswith(f". The same command goes on: {command}")


def stopped(
    words: list[str], sign: Callable[[], bool], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Start a command, and press Ctrl-C once there is a sign that it works."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hvadam", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 300
    while not sign():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to everyone
    out, errors = process.communicate(timeout=120)
    return subprocess.CompletedProcess(words, process.returncode, out, errors)


@pytest.mark.slow
def test_a_run_that_was_stopped_says_that_it_resumes(tmp_path: Path) -> None:
    words = ["run", "digits_mlp", "adam", "--set", "task.epochs=60"]
    store = Store(tmp_path / "runs")
    path = store.checkpoint_path(RunConfig("digits_mlp", "adam", settings={"epochs": 60}))
    done = stopped(words, path.exists, tmp_path)
    [line] = done.stderr.strip().splitlines()
    assert done.returncode == 130
    assert line.endswith(f"The same command goes on: hvadam {' '.join(words)}")
    again = subprocess.run(
        [sys.executable, "-m", "hvadam", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith("resuming digits_mlp adam seed 0 at step ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "sign", "said"),
    [
        (
            ["sweep", "demo", "--tasks", "digits_cnn", "--contenders", "adam", "--seeds", "2"],
            "runs/*/*/*.json",
            "sweep: resuming, ",
        ),
        (
            ["valley", "--functions", "f1", "--steps", "300", "--out", "."],
            "runs/studies/valley/*/*/*.npz",
            "",
        ),
    ],
    ids=["sweep", "valley"],
)
def test_workers_are_stopped_without_last_words(
    words: list[str], sign: str, said: str, tmp_path: Path
) -> None:
    done = stopped(words, lambda: any(tmp_path.glob(sign)), tmp_path)
    [line] = done.stderr.strip().splitlines()
    assert (done.returncode, line[:27]) == (130, "hvadam: interrupted; kept: ")
    assert not list(tmp_path.rglob(".*")), "drafts were left"
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob(sign)}
    again = subprocess.run(
        [sys.executable, "-m", "hvadam", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith(said)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}, "what was there ran again"


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file get to the disk."""

    def refuse(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)


@pytest.mark.parametrize(
    ("words", "page"),
    [
        (["report"], "report.html"),
        (["valley", "--start", "1,1", "--functions", "f2", "--steps", "3"], "valley-f2.png"),
        (["study", "scaling", "--smoke"], "scaling.json"),
    ],
    ids=lambda x: x[0] if isinstance(x, list) else "",
)
def test_a_full_disk_is_named_and_leaves_no_draft(
    words: list[str],
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    Store(Path("runs")).put(made_record(90.0))
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    request.getfixturevalue("full_disk")
    assert main(words) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("hvadam: No space left on device: ")
    assert line.endswith(page)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["run", "digits_mlp", "adam", "--lr", "nan"], ["--lr", "finite number", "nan"]),
        (["run", "digits_mlp", "adam", "--lr", "inf"], ["--lr", "finite number", "inf"]),
        (["run", "digits_mlp", "adam", "--set", "lr=1e999"], ["adam: lr must be finite, got inf"]),
        (["run", "digits_mlp", "adam", "--set", "betas=(0.9,1e999)"], ["betas must be finite"]),
        (["run", "digits_mlp", "adam", "--set", "lr=nan"], ["lr must be a number, such as 0.001"]),
        (
            ["run", "digits_cnn", "adam", "--set", "task.epochs=many"],
            ["digits_cnn: epochs must be a number, such as 240, got 'many'."],
        ),
        (["sweep", "demos"], ["hvadam: there is no recipe or task 'demos'; did you mean 'demo'?"]),
        (["run", "digits", "adam"], ["hvadam: there is no task 'digits'"]),
        (["run", "digits_mlp", "adam", "--scale", "x"], ["hvadam: digits_mlp has no scale 'x'"]),
        (
            ["sweep", "heat_pinn", "--scale", "paper"],
            ["hvadam: heat_pinn has no scale 'paper'; there are smoke, laptop."],
        ),
        (["sweep", "reviews"], ["no recipe or task 'reviews'", "--plugins DIR"]),
        (["run", "reviews", "adam"], ["there is no task 'reviews'", "--plugins DIR"]),
        (["run", "digits_mlp", "mine"], ["there is no contender 'mine'", "--plugins DIR"]),
        (["sweep", "demo", "--contenders", "mine"], ["no contender 'mine'", "--plugins DIR"]),
        (["report"], ["there are no records in runs", "hvadam sweep demo", "demo/runs"]),
    ],
    ids=lambda x: " ".join(x),
)
def test_what_cannot_be_used_is_refused_in_one_line(
    words: list[str], named: list[str], refused: Callable[[list[str]], str]
) -> None:
    line = refused(words)
    assert all(word in line for word in named), line
    assert "hvadam_bench" not in line
    assert "hvadam.bench" not in line


@pytest.mark.parametrize("command", ["report"])
def test_a_directory_for_a_page_is_refused_with_a_name_to_give(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Store(Path("runs")).put(made_record(90.0))
    Path("pages").mkdir()
    assert main([command, "--out", "pages"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "pages is a directory; name a file, such as pages/" in line
    assert list(Path("pages").iterdir()) == []


@pytest.mark.parametrize("words", [["report"], ["run", "digits_mlp", "adam", "--scale", "smoke"]])
def test_a_directory_among_the_records_is_named(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Store(Path("runs")).path(RunConfig("digits_mlp", "adam", "smoke"))
    path.mkdir(parents=True)
    (path / "mine").write_text("precious")
    assert main(words) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line == f"hvadam: {path} is no record (Is a directory); move it away."
    assert (path / "mine").read_text() == "precious"


def test_a_run_that_fails_is_told_from_one_that_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "digits_mlp", "adam", "--scale", "smoke"]
    failed = made_record(config=RunConfig("digits_mlp", "adam", "smoke"), status="failed")
    monkeypatch.setattr(showing, "run_and_show", lambda *args: failed)
    assert main(words) == 1
    assert main([*words, "--seed", "x"]) == 2


def test_a_damaged_checkpoint_is_told_of_in_a_sentence(tmp_path: Path) -> None:
    config = RunConfig("digits_mlp", "adam", "smoke")
    path = Store(tmp_path / "runs").checkpoint_path(config)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"hello")
    words = ["run", "digits_mlp", "adam", "--scale", "smoke"]
    done = subprocess.run(
        [sys.executable, "-m", "hvadam", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0
    inner = path.relative_to(tmp_path)
    assert done.stderr == (
        f"hvadam: warning: {inner} is ignored, because its checksum is wrong: "
        "the run starts over.\n"
    )
