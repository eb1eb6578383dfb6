"""How arguments are read, and refused with the value given; options that commands share."""

import ast
import math
import os
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from hvadam_bench.registry import PLUGINS, own_hint


def whole_number(least: int) -> Callable[[str], int]:
    """Return a parser of whole numbers; typer's own would not repeat what it refuses."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise typer.BadParameter(f"must be a whole number of at least {least}, got {text}.")
        return number

    return parse


parse_count, parse_seed = whole_number(1), whole_number(0)


def parse_changes(given: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return options of the contender and settings of the task, of "gamma=0.1", "task.epochs=3".

    Values are Python's literals; what is none is a string.
    """
    options, settings = {}, {}
    for change in given:
        name, equals, text = change.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"must be NAME=VALUE, got {change}.", param_hint="'--set'")
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            value = text
        if name.startswith("task."):
            settings[name.removeprefix("task.")] = value
        else:
            options[name] = value
    return options, settings


def parse_number(text: str) -> float:
    """Return a finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise typer.BadParameter(f"must be a finite number, got {text}.")
    return number


def parse_rates(text: str, option: str = "'--rates'") -> list[float]:
    """Return the learning rates in a list with commas, each once, rising."""
    try:
        rates = sorted({parse_number(part.strip()) for part in text.split(",")})
    except typer.BadParameter as error:
        raise typer.BadParameter(str(error), param_hint=option) from error
    if rates[0] <= 0:
        raise typer.BadParameter(f"must be numbers above 0, got {rates[0]:g}.", param_hint=option)
    return rates


def parse_names(
    text: str, known: Collection[str], what: str, option: str, hint: str = ""
) -> list[str]:
    """Return the names in a list with commas, each once."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            said = f"there is no {what} {name!r}; choose from {', '.join(known)}. {hint}"
            raise typer.BadParameter(said.rstrip(), param_hint=option)
    return list(dict.fromkeys(names))


def parse_contenders(text: str, option: str = "'--contenders'") -> list[str]:
    """Return the contenders in a list with commas, each once; plugins are among them."""
    from hvadam_bench.contenders import names

    return parse_names(text, names(), "contender", option, own_hint("contender"))


def make_directory(out: Path, option: str = "'--out'") -> None:
    """Make it now: nobody wants to hear after the training that nothing can be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror
    else:
        reason = None if os.access(out, os.W_OK) else "Permission denied"
    if reason:
        raise typer.BadParameter(f"cannot write to {out}: {reason}.", param_hint=option)


def refuse_directory(out: Path, name: str) -> None:
    """Refuse a directory where a file is to be written, and make the one that it is to lie in.

    Args:
        out: The file.
        name: Such a file may have.
    """
    if out.is_dir():
        raise typer.BadParameter(
            f"{out} is a directory; name a file, such as {out / name}.", param_hint="'--out'"
        )
    make_directory(out.parent)


def complete(*modules: str) -> Callable[[], list[str]]:
    """Return what a shell asks for the names of modules, which are loaded only then."""

    def names() -> list[str]:
        return [name for one in modules for name in import_module(f"hvadam_bench.{one}").names()]

    return names


def use_plugins(folder: Path | None) -> Path | None:
    """Have the files of a folder found by their names, here and in worker processes."""
    if folder is not None:
        if not folder.is_dir():
            raise typer.BadParameter(f"there is no folder {folder}.", param_hint="'--plugins'")
        os.environ[PLUGINS] = str(folder.resolve())
    return folder


Plugins = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The folder of your own contenders and tasks.",
        callback=use_plugins,
        is_eager=True,  # others ask for names
    ),
]
Threads = Annotated[
    int, typer.Option(parser=parse_count, metavar="N", help="How many threads torch may use.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        parser=parse_count, metavar="N", help="How many runs at a time; one a core if not given."
    ),
]
Some = Annotated[
    str | None, typer.Option(metavar="NAMES", help="Run these only; commas between them.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="An option of the contender, or with task.NAME a setting of the task.",
    ),
]
Records = Annotated[
    Path, typer.Option(metavar="DIR", help="The folder for records and checkpoints.")
]
Project = Annotated[
    Path, typer.Option(metavar="DIR", help="The folder under which results/ and docs/ are written.")
]
