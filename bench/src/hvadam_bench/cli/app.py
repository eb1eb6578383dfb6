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
    name: make_command(function)
    for name, function in {
        "explore": commands.explore,
        "tasks": commands.list_tasks,
        "contenders": commands.list_contenders,
        "run": commands.run,
        "recipes": commands.list_recipes,
        "sweep": commands.sweep,
        "report": commands.report,
        "open": commands.open_report,
    }.items()
}
DATA_COMMANDS = {"list": make_command(commands.list_data), "get": make_command(commands.get_data)}
# Studies that are asked for so often that `hvadam NAME` is short for `hvadam study NAME`.
SHORT = ("demo", "evidence", "speed", "theory", "valley")


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
    for name in SHORT:  # `main` puts "study" before it
        app.command(name, short_help=_about(name, args))(lambda: None)
    data = typer.Typer(rich_markup_mode=None)
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

    if folder := dict(itertools.pairwise(args)).get("--plugins"):
        use_plugins(Path(folder))  # a user's study has to be found before it can be asked
    return study.make_app(args[1] if len(args) > 1 else None)


def _about(name: str, args: Sequence[str]) -> str:
    """Return what a study does where the help is shown; studies take long to load."""
    if args and args[0] not in ("-h", "--help"):
        return ""
    from hvadam_bench.studies import get

    return get(name).about


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hvadam {__version__}")
        raise typer.Exit


def hvadam(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """HVAdam, a full-dimension adaptive optimizer."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
