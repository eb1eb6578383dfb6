"""Gather the pages of the documentation site, as mkdocs is to build them.

    python website/prepare.py build/docs

Pages are those of ``docs/``, the changelog and the guide for contributors, with the figures and
the explorer. What GitHub reads and mkdocs does not is put in its words: links that leave the
documentation lead to the repository, and a block of ``math`` becomes a formula. The reference of
options and of commands is written from the sources, so that neither can be out of date.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import fields
from io import StringIO
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import griffe

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = "https://github.com/hvadam/hvadam/blob/main/"
# Pages outside of docs/, and what they are called on the site.
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
# Where links to what is a page here only under another name lead.
RENAMED = {**OUTSIDE, "README.md": "index.md", "docs/decisions": "decisions/README.md"}
# The way back from the explorer, which elsewhere stands alone.
BACK = '<p><a href="../method.html">← hvadam: the method</a></p>'
ASSETS = ("katex.min.css", "katex.min.js", "iframe-worker.js", "formulas.js", "site.css")

_LINK = re.compile(r"(\]\()([^)\s#]*)([^)\s]*\))|(<img [^>]*src=\")([^\"#]*)(\")")
_HREF = re.compile(r"(<a [^>]*href=\")([^\"#]+)([#\"])")
_FENCE = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_MATH = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def prepare(out: Path) -> None:
    """Write everything that the site is built from into a folder, which is emptied first."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(ROOT / "docs", out)  # through the link to the explorer too
    for page in sorted((ROOT / "docs").rglob("*.md")):
        name = str(page.relative_to(ROOT / "docs"))
        (out / name).write_text(convert(page, name), encoding="utf-8")
    explorer = out / "explorer" / "index.html"
    text = explorer.read_text(encoding="utf-8")
    explorer.write_text(text.replace("<header>", f"<header>\n  {BACK}", 1), encoding="utf-8")
    for page in (ROOT / "docs").glob("*.html"):
        (out / page.name).write_text(convert_html(page), encoding="utf-8")
    for source, name in OUTSIDE.items():
        (out / name).write_text(convert(ROOT / source, name), encoding="utf-8")
    (out / "assets").mkdir()
    for name in ASSETS:
        shutil.copy(ROOT / "website" / name, out / "assets")
    reference = out / "reference"
    (reference / "options.md").write_text(options_page(), encoding="utf-8")
    (reference / "commands.md").write_text(commands_page(), encoding="utf-8")


def convert(page: Path, name: str) -> str:
    """Return a page in mkdocs' words.

    Args:
        page: The file, in the repository.
        name: What it is called on the site.
    """
    text = _MATH.sub(lambda found: f"$$\n{found[1]}$$", page.read_text(encoding="utf-8"))
    parts, end = [], 0
    for block in _FENCE.finditer(text):  # code shows links as they are
        parts += [_lead(text[end : block.start()], page, name), block[0]]
        end = block.end()
    return "".join([*parts, _lead(text[end:], page, name)])


def convert_html(page: Path) -> str:
    """Return a page that is HTML already with its links led; pages of Markdown are HTML by then."""

    def replace(found: re.Match[str]) -> str:
        there = _target(found[2], page, page.name)
        if not there.startswith(REPOSITORY):
            there = re.sub(r"README\.md$", "index.md", there).replace(".md", ".html")
        return f"{found[1]}{there}{found[3]}"

    return _HREF.sub(replace, page.read_text(encoding="utf-8"))


def _lead(text: str, page: Path, name: str) -> str:
    """Return a text with its links led to where they are on the site, or in the repository."""

    def replace(found: re.Match[str]) -> str:
        before, address, after = (found[i] or found[i + 3] for i in (1, 2, 3))
        return f"{before}{_target(address, page, name)}{after}"

    return _LINK.sub(replace, text)


def _target(address: str | None, page: Path, name: str) -> str:
    if not address or re.match(r"[a-z]+:", address):
        return address or ""
    found = Path(os.path.normpath(page.parent / address))  # links of the file system are kept
    if not found.exists() or not found.is_relative_to(ROOT):
        return address  # which mkdocs then complains about
    inside = str(found.relative_to(ROOT))
    if inside in RENAMED:
        there = RENAMED[inside]
    elif inside.startswith("docs/"):
        there = inside.removeprefix("docs/")
    else:
        return REPOSITORY + inside
    return os.path.relpath(there, Path(name).parent)


def options_page() -> str:
    """Return the page of options: what `Hyperparams` takes, in the words of HVAdam's docstring."""
    from hvadam.core.hyperparams import Hyperparams

    said = dict(_arguments())
    lines = [
        *("# Options", "", "All options of HVAdam, with their types and defaults as"),
        "`hvadam.core.hyperparams.Hyperparams` has them; construction checks every value.",
        *("", "| option | type | default | |", "|---|---|---|---|"),
    ]
    kinds = get_type_hints(Hyperparams)
    for one in fields(Hyperparams):
        kind = "a number or a tensor" if one.name == "lr" else _spell(kinds[one.name])
        lines.append(f"| `{one.name}` | {kind} | `{one.default!r}` | {said[one.name]} |")
    return "\n".join(lines) + "\n"


def _spell(kind: Any) -> str:
    """Return a type as a reader would say it: choices by their names, a union by its parts."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Literal:
        return ", ".join(f"`{one!r}`" for one in inside)
    if origin in (Union, UnionType):
        return ", ".join(map(_spell, inside))
    if kind is NoneType:
        return "`None`"
    if origin is Callable:
        return "a callable"
    return f"`{kind.__name__}`" if origin is None else f"`{kind}`"


def _arguments() -> Iterator[tuple[str, str]]:
    """Yield the arguments of HVAdam and what its docstring says of each, on one line."""
    loaded: Any = griffe.load("hvadam.torch.optimizer", search_paths=[ROOT / "src"])
    for section in loaded["HVAdam"].docstring.parse("google"):
        if section.kind is griffe.DocstringSectionKind.parameters:
            for one in section.value:
                yield one.name, " ".join(one.description.split()).replace("|", "\\|")


def commands_page() -> str:
    """Return the page of the command line: what each command says of itself."""
    from typer.main import get_command

    from hvadam.__main__ import OWN, main
    from hvadam_bench.cli.app import make_app

    about = {name: command.__doc__ or "" for name, command in OWN.items()}
    program: Any = get_command(make_app(about))
    lines = [
        *("# The command line", "", "`hvadam` comes with the library, most of its commands with"),
        *("`pip install 'hvadam[bench]'`. Each says this for itself when asked with `--help`.", ""),
    ]
    for title, command in [("hvadam", program), *_commands(program, "hvadam")]:
        context = command.context_class(command, info_name=title, terminal_width=78)
        help_text = command.get_help(context)
        if title.partition(" ")[2] in OWN:  # the library answers these, and has their options
            said = StringIO()
            with redirect_stdout(said):
                main([title.partition(" ")[2], "--help"])
            help_text = said.getvalue().rstrip()
        lines += [f"## `{title}`", "", "```text", help_text, "```", ""]
    return "\n".join(lines)


def _commands(group: Any, words: str) -> Iterator[tuple[str, Any]]:
    """Yield every command of a group as it is typed, and theirs."""
    for name, command in group.commands.items():
        yield f"{words} {name}", command
        if hasattr(command, "commands"):
            yield from _commands(command, f"{words} {name}")


class Examples(griffe.Extension):
    """Gives the examples of docstrings the heading under which griffe knows them for code."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rename the section of one object, as soon as it is read."""
        if obj.docstring:
            obj.docstring.value = re.sub(
                r"^Example:$", "Examples:", obj.docstring.value, flags=re.M
            )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    prepare(Path(sys.argv[1]))
