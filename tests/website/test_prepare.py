"""The pages that the site is built from: links, formulas, and what is written from the sources."""

from __future__ import annotations

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
