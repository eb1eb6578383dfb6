"""What the tests of the bench share."""

from collections.abc import Callable
from pathlib import Path

import pytest
from toys import Builder

from hvadam.bench import tasks
from hvadam.bench.cli import main
from hvadam.bench.records import Store
from hvadam.bench.tasks import Task


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> Builder:
    """Every task is the toy."""
    builder = Builder()
    task = Task(
        *("toy", "A toy", "extra", "loss", "min"),
        build=builder,
        scales={"smoke": {"steps": 24}, "paper": {"steps": 24}},
        published={"adam": 0.5},
        evaluations=4,
    )
    monkeypatch.setattr(tasks, "get", lambda name: task)
    return builder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty one."""
    return Store(tmp_path / "store")


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[list[str]], str]:
    """Gives the command line bad arguments; it writes nothing and says so in one line."""

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
