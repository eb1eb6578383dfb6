"""The words of both packages: docstrings, help, templates and messages are whole sentences."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

import hvadam
import hvadam_bench
from hvadam_bench.cli.app import SHORT, make_app

# Openings that lean on what stands before them, which a hover box does not show.
LEANING = ("Of ", "The same", "Likewise", "As ", "And ", "Such as", "Like ")
# Words that a function's first line cannot begin with, for a verb does.
NO_VERB = {"A", "All", "An", "Both", "How", "One", "That", "The", "Those", "What", "Whether"}
NO_VERB |= {"Where", "Which", "Who", "Whose", "Why"}

# Openings of help that have no noun: what is of weights, who is to be compared?
HEADLESS = ("Of ", "As ", "Who ", "Whom ", "Whose ", "Which")
# A sentence without its head, and one that ends where a thought begins.
WORST = re.compile(r"(?:^|[.:;?] )Of (?!course)[a-z]|\b(?:nothing|\w+ or) else\.|[;,] else\.")

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


def commands(group: Any, path: str = "hvadam") -> Iterator[tuple[str, Any]]:
    """Yield every command below a group with its whole name."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")
        elif path != "hvadam" or name not in SHORT:
            yield f"{path} {name}", command


COMMANDS = dict(commands(get_command(make_app({}, ["study"]))))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_of_whole_sentences(name: str) -> None:
    command = COMMANDS[name]
    about = inspect.cleandoc(command.help or command.short_help or "")
    first = about.partition("\n")[0]
    said = {"the command": about} | {
        str(one.name): one.help for one in command.params if getattr(one, "help", None)
    }
    wrong = [f"{where}: {text}" for where, text in said.items() if unlike_a_sentence(text)]
    assert not wrong, "\n".join(wrong)
    assert not about or complaint(first, thing=False) is None


def unlike_a_sentence(text: str) -> bool:
    return text.startswith(HEADLESS) or not text.endswith(".") or bool(WORST.search(text))


@pytest.mark.parametrize("package", [hvadam, hvadam_bench], ids=lambda one: one.__name__)
def test_templates_and_messages_are_of_whole_sentences(package: ModuleType) -> None:
    root = Path(str(package.__file__)).parent
    found = [(path, path.read_text(encoding="utf-8")) for path in root.rglob("*.j2")]
    found += [(path, one) for path in root.rglob("*.py") for one in messages(parsed(path))]
    wrong = [
        f"{path.name}: {hit[0]}"
        for path, text in found
        for hit in WORST.finditer(" ".join(text.split()))
    ]
    assert not wrong, "\n".join(wrong)


def messages(tree: ast.Module) -> Iterator[str]:
    """Yield the strings of what is raised, and of what `fail` and `print_line` print."""
    for node in ast.walk(tree):
        calls = isinstance(node, ast.Call) and ast.unparse(node.func) in ("fail", "print_line")
        if calls or isinstance(node, ast.Raise):
            for one in ast.walk(node):
                if isinstance(one, ast.Constant) and isinstance(one.value, str):
                    yield one.value


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("The seed of weights, batches and dropout.", False),
        ("Of weights, batches and dropout.", True),
        ("Whom to compare with.", True),
        ("The runs. Of each winner, one is drawn.", True),
        ("Take the adaptive step, and nothing else.", True),
        ("a guess, else the first named.", False),
        ("The seed", True),
    ],
)
def test_complaints_about_help(text: str, wrong: bool) -> None:
    assert unlike_a_sentence(text) == wrong


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
