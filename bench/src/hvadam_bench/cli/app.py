"""The commands, in the order of `hvadam --help`."""

import inspect
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from hvadam._version import __version__
from hvadam_bench.cli import commands
from hvadam_bench.cli.arguments import make_command, use_plugins

COMMANDS = {
    "explore": make_command(commands.explore),
    "tasks": make_command(commands.list_tasks),
    "contenders": make_command(commands.list_contenders),
    "run": make_command(commands.run),
    "recipes": make_command(commands.list_recipes),
    "sweep": make_command(commands.sweep),
    "report": make_command(commands.report),
    "open": make_command(commands.open_report),
}
# Studies that are asked for so often that `hvadam NAME` is short for `hvadam study NAME`.
SHORT = ("demo", "evidence", "speed", "theory", "valley")
DATA_COMMANDS = {"list": make_command(commands.list_data), "get": make_command(commands.get_data)}


def make_app(own: Mapping[str, str], args: Sequence[str] = ()) -> typer.Typer:
    """Return the command line as typer has it.

    Args:
        own: Commands that the library answers before anybody is asked here, with a line of help.
        args: The arguments, of which the first ones say which study has to be loaded.
    """
    app = typer.Typer(
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(hvadam)
    for name, about in own.items():
        app.command(name, help=about, short_help=about)(lambda: None)
    data = typer.Typer(rich_markup_mode=None)
    for name in SHORT:
        if name not in COMMANDS:  # `main` puts "study" before it
            app.command(name, short_help=_about(name, args))(lambda: None)
    for group, named in ((app, COMMANDS), (data, DATA_COMMANDS)):
        for name, command in named.items():
            # As the short help it is wrapped; the first line of a long one would be cut.
            group.command(name, short_help=inspect.getdoc(command))(command)
    app.add_typer(data, name="data", help="List data sets, and download them.")
    app.add_typer(_study_app(args), name="study", help="Answer one question, and write its page.")
    return app


def _study_app(args: Sequence[str]) -> typer.Typer:
    """Return the commands of the studies that the arguments may mean: one, all, or none."""
    if args[:1] != ["study"]:
        return typer.Typer()
    from hvadam_bench.cli import study  # which loads the studies

    given = dict(itertools.pairwise(args))
    if folder := given.get("--plugins"):  # a user's study has to be found before it can be asked
        use_plugins(Path(folder))
    return study.make_app(args[1] if len(args) > 1 else None)


def _about(name: str, args: Sequence[str]) -> str:
    """Return what a study does where the help is shown; studies take long to load."""
    if args and args[0] not in ("-h", "--help"):
        return ""
    from hvadam_bench.studies import get

    return get(name).about


def show_version(wanted: bool) -> None:
    """Print it and leave."""
    if wanted:
        typer.echo(f"hvadam {__version__}")
        raise typer.Exit


def hvadam(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """HVAdam, a full-dimension adaptive optimizer."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
