"""The Python and the commands that the pages show."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench" / "README.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:hvadam|make|python|torchrun) \S.*")


def python_on(page: Path) -> list[str]:
    """Return the Python of a page, in its order."""
    text = page.read_text(encoding="utf-8")
    return [block for language, block in _BLOCK.findall(text) if language == "python"]


def commands_on(page: Path) -> list[str]:
    """Return the commands of a page, in its blocks and in its sentences."""
    text = page.read_text(encoding="utf-8")
    blocks = [
        block.replace("\\\n", " ") for language, block in _BLOCK.findall(text) if not language
    ]
    lines = [line for block in blocks for line in block.splitlines()]
    lines += [" ".join(one.split()) for one in re.findall(r"`([^`]+)`", _BLOCK.sub("", text))]
    parts = [part.strip() for line in lines for part in line.partition("#")[0].split(";")]
    return [part for part in parts if _COMMAND.fullmatch(part)]
