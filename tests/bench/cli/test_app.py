"""What the commands say of themselves: help that is whole, completion, lists, the last report."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest

from hvadam.__main__ import main
from hvadam_bench import contenders, tasks
from hvadam_bench.cli.app import COMMANDS, DATA_COMMANDS
from hvadam_bench.registry import PLUGINS

EVERY = [[], ["data"], *([name] for name in COMMANDS), *(["data", name] for name in DATA_COMMANDS)]


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("words", EVERY, ids=lambda words: " ".join(words) or "hvadam")
def test_help_is_whole(
    words: list[str],
    width: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERMINAL_WIDTH", str(width))
    shown = []
    for option in ("-h", "--help"):
        assert main([*words, option]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    text = shown[0]
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert not re.search(r"\w\.\.\.", text)  # a sentence that was cut; [ARGS]... is none
    groups = {(): COMMANDS, ("data",): DATA_COMMANDS}
    if (group := groups.get(tuple(words))) is not None:
        for command in group.values():
            assert command.__doc__
            assert flat(command.__doc__) in flat(text)
    else:
        command = {**COMMANDS, **DATA_COMMANDS}[words[-1]]
        assert flat(command.__doc__ or "") in flat(text)
        options = text.partition("Options:\n")[2].splitlines()
        described = [line for line in options if re.match(r"\s+-", line)]
        assert all(re.search(r"\S  +\S", line.strip()) for line in described), described


def complete(*words: str) -> list[str]:
    """Return what bash is told to complete the last word to."""
    done = subprocess.run(
        [sys.executable, "-m", "hvadam"],
        env={
            **os.environ,
            "_HVADAM_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(["hvadam", *words]),
            "COMP_CWORD": str(len(words)),
        },
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["run", "digits_"], [name for name in tasks.names() if name.startswith("digits_")]),
        (["run", "--thr"], ["--threads"]),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (["sw"], ["sweep"]),
                (["sweep", "dem"], ["demo"]),
                (["sweep", "digits_m"], ["digits_mlp"]),
                (["run", "digits_mlp", "adabe"], ["adabelief"]),
                (["data", "get", "pyd"], ["pydoc"]),
            )
        ),
    ],
    ids=lambda words: " ".join(words),
)
def test_shells_complete_commands_and_names(words: list[str], completed: list[str]) -> None:
    assert sorted(complete(*words)) == completed


def test_completion_can_be_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-h"]) == 0
    assert "--install-completion" in capsys.readouterr().out


def test_contenders_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["contenders"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in contenders.names():
        assert any(line.startswith(f"{name} ") for line in lines), name
    text = flat(" ".join(lines))
    assert "adamw AdamW (arXiv:1711.05101)" in text
    assert "lr 0.001, betas (0.9, 0.999), eps 1e-08" in text


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the addresses that a browser is asked to open; there is none here."""
    asked: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: asked.append(address) or True)
    return asked


def test_open_shows_the_last_report(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    browser: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    pages = [Path("report.html"), Path("a demo", "report.html"), Path("other.html")]
    for age, page in enumerate(pages):
        page.parent.mkdir(exist_ok=True)
        page.write_text("")
        os.utime(page, (age, age))
    Path("a folder", "report.html").mkdir(parents=True)  # none of ours
    assert main(["open"]) == 0
    assert capsys.readouterr().out == f"opening {tmp_path / 'a demo' / 'report.html'}\n"
    assert main(["open", "other.html"]) == 0
    assert browser == [(tmp_path / page).as_uri() for page in pages[1:]]


def test_open_says_where_a_report_comes_from(
    refused: Callable[[list[str]], str], browser: list[str]
) -> None:
    assert "there is no report.html here; `hvadam report` writes one" in refused(["open"])
    assert "there is no mine.html" in refused(["open", "mine.html"])
    assert browser == []


def test_open_without_a_browser_still_says_which_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("report.html").write_text("")
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    assert main(["open"]) == 1
    printed, errors = capsys.readouterr()
    assert printed == f"opening {tmp_path / 'report.html'}\n"
    assert errors == "hvadam: no browser could be started here.\n"


def test_explore_opens_the_page(capsys: pytest.CaptureFixture[str], browser: list[str]) -> None:
    assert main(["explore"]) == 0
    [address] = browser
    page = Path(unquote(address.removeprefix("file://")))  # a checkout may lie in "my code"
    assert page.parts[-2:] == ("explorer", "index.html")
    assert page.is_file()
    assert capsys.readouterr().out == f"opening {page}\n"


OWN_STUDY = '''
"""A study of one's own."""

from dataclasses import dataclass

from hvadam_bench.studies import Study


@dataclass(frozen=True)
class Sum:
    total: int


def plan(*, terms: int = 3, smoke: bool = False) -> int:
    """Return how many terms are added.

    Args:
        terms: The number of terms.
        smoke: Add one term only.
    """
    return 1 if smoke else terms


def render(results, out):
    page = out / "docs" / "sum.md"
    page.write_text(f"The sum is {results['sum'].total}.")
    return [page]


STUDY = Study(
    "sum", "Add numbers.", plan, lambda count, place: {"sum": Sum(sum(range(count)))}, render,
    {"sum": Sum},
)
'''


def test_a_study_of_ones_own_is_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(PLUGINS, "")  # which the option sets
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "adding.py").write_text(OWN_STUDY)
    assert main(["study", "sum", "--plugins", "mine", "--terms", "5"]) == 0
    assert (tmp_path / "sum-results" / "docs" / "sum.md").read_text() == "The sum is 10."
    assert main(["study", "sum", "--plugins", "mine", "-h"]) == 0
    assert "The number of terms." in capsys.readouterr().out
    assert main(["study", "sum", "--plugins", "mine", "--terms", "none"]) == 2
    assert "must be a whole number of at least 1, got none" in capsys.readouterr().err
