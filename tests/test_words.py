"""Docstrings of both packages: the first line is there, is a sentence, and stands alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import hvadam
import hvadam_bench

# Openings that lean on what stands before them, which a hover box does not show.
LEANING = ("Of ", "The same", "Likewise", "As ", "And ", "Such as", "Like ")
# Words that a function's first line cannot begin with, for a verb does.
NO_VERB = {"A", "All", "An", "Both", "How", "One", "That", "The", "Those", "What", "Whether"}
NO_VERB |= {"Where", "Which", "Who", "Whose", "Why"}

REPOSITORY = Path(__file__).parents[1]

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def rooms() -> dict[str, list[Path]]:
    """Return the files of every room; those beside the rooms are the package's own."""
    found: dict[str, list[Path]] = {}
    for root in (Path(hvadam.__file__).parent, Path(hvadam_bench.__file__).parent):
        for path in sorted(root.rglob("*.py")):
            inner = path.relative_to(root).parts[:-1]
            found.setdefault(".".join([root.name, *inner[:1]]), []).append(path)
    return found


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def classes() -> dict[str, list[ast.ClassDef]]:
    """Return the classes of both packages by name."""
    found: dict[str, list[ast.ClassDef]] = {}
    for path in (path for paths in rooms().values() for path in paths):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def public(
    body: list[ast.stmt], within: ast.ClassDef | None = None
) -> Iterator[tuple[str, str, bool]]:
    """Yield the public definitions: name, first line, and whether it is a class."""
    for node in body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            name = f"{within.name}.{node.name}" if within else node.name
            yield name, first_line(node) or inherited(node, within), isinstance(node, ast.ClassDef)
            if isinstance(node, ast.ClassDef):
                yield from public(node.body, node)


def first_line(node: ast.Module | Definition) -> str:
    return (ast.get_docstring(node) or "").partition("\n")[0]


def inherited(node: Definition, within: ast.ClassDef | None) -> str:
    """Return the first line that a method takes over from a base class of ours."""
    for base in within.bases if within else ():
        for owner in classes().get(ast.unparse(base).rpartition(".")[2], []):
            for member in owner.body:
                if isinstance(member, Definition) and member.name == node.name:
                    return first_line(member) or inherited(member, owner)
            if found := inherited(node, owner):
                return found
    return ""


def complaint(line: str, thing: bool) -> str | None:
    """Return what is wrong with the first line of a thing or of a function, if anything is."""
    if not line:
        return "has no docstring"
    if not line.endswith("."):
        return f"does not end its first line with a period: {line!r}"
    if line.startswith(LEANING):
        return f"leans on what stands before it: {line!r}"
    first = line.split()[0]
    if not thing and (first in NO_VERB or not first[0].isupper()):
        return f"does not begin with a verb: {line!r}"
    return None


@pytest.mark.parametrize("room", rooms())
def test_first_lines_stand_alone(room: str) -> None:
    wrong: list[str] = []
    for path in rooms()[room]:
        module = ("the module", first_line(parsed(path)), True)
        for name, line, thing in [module, *public(parsed(path).body)]:
            if found := complaint(line, thing):
                wrong.append(f"{path.name}: {name} {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="needs a clone")
def test_the_map_for_contributors_names_every_room() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tree = text.partition("## Where things live")[2].partition("### One optimizer step")[0]
    for package in (hvadam, hvadam_bench):
        for room in Path(str(package.__file__)).parent.iterdir():
            if (room / "__init__.py").exists():
                assert f"{room.name}/" in tree, f"CONTRIBUTING.md: where things live: {room.name}/"


@pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="needs a clone")
def test_the_walks_for_contributors_pass_files_that_there_are() -> None:
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    walks = text.partition("### One optimizer step")[2].partition("## Who may import")[0]
    roots = [REPOSITORY, *(Path(str(p.__file__)).parent for p in (hvadam, hvadam_bench))]
    names = {path.name for root in roots[1:] for path in root.rglob("*.py")}
    for name in re.findall(r"`([\w/]+\.py)`", walks):
        known = any((root / name).exists() for root in roots) if "/" in name else name in names
        assert known, f"CONTRIBUTING.md leads to {name}"


@pytest.mark.parametrize(
    ("line", "thing", "found"),
    [
        ("Return the squared norm of the gradients.", False, None),
        ("The squared norm of the gradients.", True, None),
        ("The squared norm of the gradients.", False, "does not begin with a verb"),
        ("b_t of every run.", False, "does not begin with a verb"),
        ("Asks for a batch.", False, None),
        ("", True, "has no docstring"),
        ("Return the squared norm", False, "does not end"),
        ("Of all of them.", True, "leans on"),
        ("The same for a float.", False, "leans on"),
    ],
)
def test_complaints(line: str, thing: bool, found: str | None) -> None:
    assert (complaint(line, thing) or "").startswith(found or "")
    assert (complaint(line, thing) is None) == (found is None)
