"""The pages that the site is built from: links, formulas, and what is written from the sources."""

from __future__ import annotations

import re
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import prepare
import pytest
import yaml

from hvadam.core.hyperparams import Hyperparams

ROOT = prepare.ROOT
GITHUB = "https://github.com/hvadam/hvadam/blob/main/"


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("docs/method.md", "[a](decisions/README.md#b)", "[a](decisions/README.md#b)"),
        ("docs/method.md", "[a](../results/theory.json)", f"[a]({GITHUB}results/theory.json)"),
        ("docs/decisions/README.md", "[a](../../README.md)", "[a](../index.md)"),
        ("docs/howto/ddp.md", "[a](../../CHANGELOG.md)", "[a](../changelog.md)"),
        ("CONTRIBUTING.md", "[a](docs/method.md)", "[a](method.md)"),
        ("CONTRIBUTING.md", "[a](docs/decisions)", "[a](decisions/README.md)"),
        ("docs/index.md", "[a](explorer/index.html)", "[a](explorer/index.html)"),
        ("docs/index.md", "[a](https://b.c/d)", "[a](https://b.c/d)"),
        ("docs/index.md", "[a](#b)", "[a](#b)"),
        ("docs/index.md", "[a](nowhere.md)", "[a](nowhere.md)"),
        ("README.md", '<img src="docs/figures/x.svg">', '<img src="docs/figures/x.svg">'),
        (
            "docs/method.md",
            '<img src="figures/valley-f2.png">',
            '<img src="figures/valley-f2.png">',
        ),
        (
            "docs/method.md",
            "```\n[a](../README.md)\n```\n[a](../README.md)",
            "```\n[a](../README.md)\n```\n[a](index.md)",
        ),
        ("docs/method.md", "```math\nx\n```\n", "$$\nx\n$$\n"),
    ],
)
def test_pages_are_put_in_mkdocs_words(
    page: str, text: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hold a page to what the site has in its place, under its name there."""
    name = prepare.OUTSIDE.get(page, page.removeprefix("docs/"))
    monkeypatch.setattr(Path, "read_text", lambda self, encoding: text)
    assert prepare.convert(ROOT / page, name) == expected


def test_options_are_all_there_with_a_sentence() -> None:
    rows = [line.split(" | ") for line in prepare.options_page().splitlines() if line[:3] == "| `"]
    assert [row[0] for row in rows] == [f"| `{one.name}`" for one in fields(Hyperparams)]
    assert all(len(row) == 4 and len(row[3]) > 10 for row in rows)
    assert rows[0][2] == "`0.001`"


def test_commands_say_what_they_say() -> None:
    page = prepare.commands_page()
    for command in ("hvadam", "hvadam info", "hvadam sweep", "hvadam explore", "hvadam data get"):
        assert f"\n## `{command}`\n" in page
    assert "--json" in page.partition("## `hvadam info`")[2].partition("##")[0]


def test_every_page_has_its_place() -> None:
    """Decisions are reached by their index, all others by the navigation."""

    def leaves(node: Any) -> list[str]:
        if isinstance(node, str):
            return [node]
        inner = node.values() if isinstance(node, dict) else node
        return [leaf for one in inner for leaf in leaves(one)]

    listed = leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    assert len(listed) == len(set(listed))
    written = {"reference/options.md", "reference/commands.md", *prepare.OUTSIDE.values()}
    docs = ROOT / "docs"
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} | written
    for page in sorted(pages):
        if not page.startswith("decisions/0"):
            assert page in listed, f"mkdocs.yml: nav lacks {page}"
    for page in listed:
        assert page in written or (docs / page).is_file(), f"mkdocs.yml: there is no {page}"


# The workflows run commands that there are, and the makefile installs no more than they need.
WORKFLOWS = sorted((prepare.ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_the_makefile(path: Path) -> None:
    """So that what they do can be done by hand, and no command is written twice."""
    workflow: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    targets = re.findall(r"^([a-z-]+):", (prepare.ROOT / "Makefile").read_text(), re.M)
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    assert commands
    for command in commands:
        program, target = command.split()
        assert program == "make"
        assert target in targets


def test_the_site_is_built_by_make(tmp_path: Path) -> None:
    """In a clone where everything is to be done: what it would do, in order."""
    for name in ("Makefile", "pyproject.toml", "setup.py", "constraints.txt"):
        (tmp_path / name).write_bytes((prepare.ROOT / name).read_bytes())
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "pyproject.toml").touch()
    command = ["make", "--dry-run", "docs"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "-e '.[docs]'" in done.stdout
    assert "[dev]" not in done.stdout
    assert done.stdout.index("website/prepare.py") < done.stdout.index("-m mkdocs build")
