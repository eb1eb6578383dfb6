"""The library's own command line, with the bench and without."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoints

import pytest

from hvadam import __main__ as command
from hvadam import __version__


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the library is installed."""
    monkeypatch.setattr(command, "entry_points", lambda group: EntryPoints())


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("name", ["sweep", "report", "demo", "inof"])
def test_a_command_of_the_bench_says_what_to_install(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([name, "--seeds", "3"]) == 2
    printed, errors = capsys.readouterr()
    [line] = errors.splitlines()
    assert printed == ""
    assert line.startswith(f"hvadam: {name!r} is not a command of the library, which has info")
    assert line.endswith("pip install 'hvadam[bench]'")


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_help_lists_what_there_is(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(words) == 0
    printed = capsys.readouterr().out
    assert "info" in printed
    assert "hvadam[bench]" in printed


@pytest.mark.usefixtures("alone")
def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--version"]) == 0
    assert capsys.readouterr().out == f"hvadam {__version__}\n"


@pytest.mark.parametrize("bench", [True, False])
def test_info_is_the_library_s_own(
    bench: bool, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    if not bench:
        request.getfixturevalue("alone")
    assert command.main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["versions"]["hvadam"] == __version__
    assert command.main(["info", "--jsn"]) == 2
    assert capsys.readouterr().err == "hvadam: unrecognized arguments: --jsn\n"


def test_the_bench_joins(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--help"]) == 0
    printed = capsys.readouterr().out
    for name in ("info", "sweep", "report", "study"):
        assert f"\n  {name} " in printed
