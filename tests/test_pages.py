"""What the pages show runs as pasted: Python in order from a fresh start, commands as named."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from snippets import PAGES, ROOT, commands_on, python_on
from typer.main import get_command

from hvadam.__main__ import OWN
from hvadam_bench.cli.app import COMMANDS, SHORT, make_app
from hvadam_bench.cli.arguments import PLUGINS

# Shown to be run by several processes or within other trainers: tests/trainers runs these.
ELSEWHERE = ("accelerate.md", "ddp.md", "fsdp2.md", "hugging-face.md", "lightning.md")
ELSEWHERE += ("other-sharding.md", "train-a-pinn.md")
# Trains for half an hour, on data that must be downloaded: read, not run.
LONG = "runner.run("
SLOW = ("0016-two-kernels.md", "compile.md", "fit-on-a-full-batch.md", "jax.md")
SLOW += ("measure-gradients.md",)

HERE = [page for page in PAGES if python_on(page) and page.name not in ELSEWHERE]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.name in SLOW else ()) for page in HERE],
    ids=lambda page: str(page.relative_to(ROOT)),
)
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
def test_python_runs_as_pasted(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of the page, from a folder like a clone's; warnings are errors here too."""
    shown = python_on(page)
    for program in shown:
        compile(program, str(page), "exec")
    pasted = tmp_path / "pasted.py"
    pasted.write_text("\n\n".join(one for one in shown if LONG not in one))
    (tmp_path / "results").symlink_to(ROOT / "results")
    monkeypatch.chdir(tmp_path)
    with torch.random.fork_rng():
        runpy.run_path(str(pasted), run_name="__main__")


def test_what_needs_processes_is_run_too() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "trainers").glob("test_*.py"))
    for name in ELSEWHERE:
        assert f'"{name}"' in tests, f"no test in tests/trainers runs {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_are_there(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of hvadam parse as given, those of make have a target, scripts are there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(PLUGINS, "")  # which parsing sets
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for line in commands_on(page):
        words = shlex.split(line)
        for folder in (word for word in words if word.endswith("/")):
            Path(folder).mkdir(exist_ok=True)
        if words[0] == "hvadam":
            given = words[1:]
            if given[0] in SHORT and given[0] not in COMMANDS:
                given.insert(0, "study")
            parse(get_command(make_app(dict.fromkeys(OWN, ""), given)), given)
        elif words[0] == "make":
            named = [word for word in words[1:] if "=" not in word]
            assert set(named) <= targets, line
        for script in (word for word in words if word.startswith("examples/")):
            assert (ROOT / script).is_file(), line


def parse(group: Any, words: list[str]) -> None:
    """Fail as the command line does if a command or an option is not known, without running it."""
    if not words:  # a group by itself
        return
    if words[0].startswith("-"):  # the program's own options act when they are parsed
        assert any(words[0] in one.opts for one in group.params), words
        return
    name, command, rest = group.resolve_command(group.make_context("hvadam", list(words)), words)
    if hasattr(command, "resolve_command"):
        parse(command, rest)
    else:
        command.make_context(name, list(rest))
