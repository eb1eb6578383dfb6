"""How arguments are read, and refused with the value given; options that commands share."""

import ast
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer


def parse_count(text: str) -> int:
    """Typer's own check of a range would not repeat the value it refuses."""
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise typer.BadParameter(f"must be a whole number of at least 1, got {text}.")
    return count


def parse_seed(text: str) -> int:
    """Like ``parse_count``, from 0."""
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if seed < 0:
        raise typer.BadParameter(f"must be a whole number of at least 0, got {text}.")
    return seed


def parse_changes(given: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the contender and settings of the task, out of "gamma=0.1" and "task.epochs=3".

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
    """Like ``parse_count``."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number, got {text}.") from None


def parse_names(text: str, known: Collection[str], what: str, option: str) -> list[str]:
    """Names out of a list with commas, each once."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise typer.BadParameter(
                f"there is no {what} {name!r}; choose from {', '.join(known)}.", param_hint=option
            )
    return list(dict.fromkeys(names))


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


Threads = Annotated[
    int, typer.Option(parser=parse_count, metavar="N", help="Threads that torch may use.")
]
Workers = Annotated[
    int | None,
    typer.Option(parser=parse_count, metavar="N", help="Runs at a time; one a core if not given."),
]
Some = Annotated[str | None, typer.Option(metavar="NAMES", help="Only these; commas between them.")]
Records = Annotated[Path, typer.Option(metavar="DIR", help="Where records and checkpoints go.")]
Project = Annotated[
    Path, typer.Option(metavar="DIR", help="Under which results/ and docs/ are written.")
]
