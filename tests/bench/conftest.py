"""Fixtures of the bench's tests: a toy task, an empty store, a refusing command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_evidence
import pytest
from toys import Builder

from hvadam.__main__ import main
from hvadam_bench import tasks
from hvadam_bench.running.records import Store
from hvadam_bench.tasks import Task


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> Builder:
    """Replace every task by the toy."""
    builder = Builder()
    task = Task(
        *("toy", "A toy", "extra", "loss", "min"),
        build=builder,
        scales={"smoke": {"steps": 24}, "paper": {"steps": 24}},
        published={"adam": 0.5},
        published_from="They are made.",
        evaluations=4,
    )
    monkeypatch.setattr(tasks, "get", lambda name: task)
    return builder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return an empty store."""
    return Store(tmp_path / "store")


@pytest.fixture
def no_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Name a data folder that does not exist."""
    monkeypatch.setenv("HVADAM_DATA", str(tmp_path / "none"))


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[list[str]], str]:
    """Return a command that gives bad arguments, and must write nothing and say so in one line."""

    def refuse(arguments: list[str]) -> str:
        monkeypatch.chdir(tmp_path)
        before = list(tmp_path.iterdir())
        assert main(arguments) == 2
        printed, errors = capsys.readouterr()
        assert printed == ""
        [line] = errors.splitlines()
        assert line.startswith("hvadam: ")
        assert list(tmp_path.iterdir()) == before
        return line

    return refuse


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the evidence of made-up runs of all parts, in which HVAdam is the best."""
    return made_evidence.whole(tmp_path_factory.mktemp("good"), made_evidence.GOOD)


@pytest.fixture(scope="session")
def bad(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the evidence of made-up runs of all parts, in which HVAdam is the worst."""
    return made_evidence.whole(tmp_path_factory.mktemp("bad"), made_evidence.BAD)
