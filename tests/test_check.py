"""What `hvadam check` prints, and its exit code, with the bench and without."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoints

import pytest

from hvadam import __main__ as command
from hvadam import __version__, check
from hvadam.torch.self_check import Trial

TRIALS = [
    Trial("loop", "cpu", "float32", None, "reference", 7e-7, 1e-5),
    Trial("native", "cpu", "int8", None, "loop", 3e-7, 1e-2),
    Trial("triton", unavailable="triton is not installed. Install hvadam[triton]."),
]
WRONG = Trial("foreach", "cpu", "float32", None, "reference", float("nan"), 1e-5)


@pytest.fixture(params=[True, False], ids=["with the bench", "alone"])
def _install(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(command, "entry_points", lambda group: EntryPoints())


@pytest.mark.usefixtures("_install")
def test_the_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(check, "collect", lambda: TRIALS)
    assert command.main(["check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"hvadam {__version__}, torch ")
    assert lines[3] == "kernel   device  state     judge        off by  allowed"
    assert lines[4] == "loop     cpu     float32   reference     7e-07    1e-05  agrees"
    assert lines[6] == "triton   not available: triton is not installed. Install hvadam[triton]."
    assert lines[-1] == "All 2 agree."
    assert max(map(len, lines[3:])) <= 80


def test_one_that_disagrees(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "collect", lambda: [*TRIALS, WRONG])
    assert command.main(["check"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[6].split() == [
        "foreach",
        "cpu",
        "float32",
        "reference",
        "nan",
        "1e-05",
        "DISAGREES",
    ]
    assert lines[-1] == "1 of 3 is further off than rounding: please report this table."


def test_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(check, "collect", lambda: TRIALS)
    assert command.main(["check", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["versions"]["hvadam"] == __version__
    assert [trial["agrees"] for trial in found["trials"]] == [True, True, True]
    assert found["trials"][2]["unavailable"].startswith("triton is not")


def test_without_torch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert command.main(["check"]) == 1
    assert tuple(capsys.readouterr()) == (
        "",
        "hvadam: torch is not installed: pip install 'hvadam[torch]'\n",
    )
