"""How a function becomes a command: its signature has the options, its docstring their help.

Values that cannot be used are refused with the value given.
"""

from __future__ import annotations

import ast
import inspect
import math
import os
import re
import types
from collections.abc import Callable, Collection, Sequence
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from hvadam_bench.registry import PLUGINS, own_hint


def make_command(
    function: Callable[..., None], parameters: Sequence[inspect.Parameter] = (), about: str = ""
) -> Callable[..., None]:
    """Return a function as typer takes it, with the options that its signature says.

    Args:
        function: The function. Its arguments are described under Args in its docstring.
        parameters: The options, if they are not those of the function's own signature.
        about: The help, if it is not what the docstring begins with.
    """

    def command(**given: Any) -> None:
        function(**given)

    parameters = parameters or options_of(function)
    command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__doc__ = about or (inspect.getdoc(function) or "").partition("\n\n")[0]
    return command


def options_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a function as options, with help from its docstring."""
    section = re.search(
        r"^Args:\n((?:[ ]{4,}.*\n?)+)", inspect.getdoc(function) or "", re.MULTILINE
    )
    entries = re.findall(
        r"^    (\w+): ((?:.*\n?)(?:^ {8,}.*\n?)*)", section[1] if section else "", re.MULTILINE
    )
    about = {name: " ".join(words.split()) for name, words in entries}
    hints = get_type_hints(function, include_extras=True)
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        kind, default = hints[name], parameter.default
        if get_origin(kind) is Annotated:
            kind, info = kind.__origin__, copy(kind.__metadata__[0])
            info.help = info.help or about[name]
        else:
            kind, info = _option(name, kind, about[name])
        if isinstance(default, tuple):
            default = ",".join(map(str, default))
        found.append(
            inspect.Parameter(
                name,
                parameter.POSITIONAL_OR_KEYWORD,
                default=default,
                annotation=Annotated[kind, info],
            )
        )
    return found


def _option(name: str, kind: Any, about: str) -> tuple[Any, Any]:
    """Return the type that typer sees, and the option, of a type that a function takes."""
    flag = f"--{name.replace('_', '-')}"
    if kind is bool:
        return bool, typer.Option(flag, help=about)
    if kind is Path:
        return Path, typer.Option(flag, help=about, metavar="DIR")
    shown, parse = _form(name, kind)
    return str | None, typer.Option(flag, help=about, metavar=shown, parser=parse)


def _form(name: str, kind: Any) -> tuple[str, Callable[[str], Any]]:
    """Return how a value is shown in the help, and its parser."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        [kind] = [one for one in arguments if one is not types.NoneType]
        return _form(name, kind)
    if origin is Literal:
        return "|".join(arguments), lambda text: parse_names(text, arguments, name, f"'--{name}'")[
            0
        ]
    numbers: dict[Any, Any] = {int: ("N", parse_count), float: ("X", parse_number)}
    if origin is tuple:  # a list with commas, each value once
        _, parse = numbers.get(arguments[0], ("", str.strip))
        return "NAMES" if arguments[0] is str else "NUMBERS", lambda text: tuple(
            dict.fromkeys(parse(part) for part in text.split(",") if part.strip())
        )
    return numbers.get(kind, ("NAME", str))


def parse_count(text: str, least: int = 1) -> int:
    """Return a whole number; typer's own parser would not repeat what it refuses."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise typer.BadParameter(f"must be a whole number of at least {least}, got {text}.")
    return number


def parse_seed(text: str) -> int:
    """Return a whole number of at least 0."""
    return parse_count(text, 0)


def parse_number(text: str) -> float:
    """Return a finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise typer.BadParameter(f"must be a finite number, got {text}.")
    return number


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


def complete(*modules: str) -> Callable[[], list[str]]:
    """Return what a shell asks for the names of modules, which are loaded only then."""
    return lambda: [
        name for one in modules for name in import_module(f"hvadam_bench.{one}").names()
    ]


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
Workers = Annotated[
    int | None,
    typer.Option(
        parser=parse_count, metavar="N", help="How many runs at a time; one a core if not given."
    ),
]
Names = Annotated[
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
