"""The commands, in the order of `hvadam --help`."""

from typing import Annotated

import typer

from hvadam._version import __version__
from hvadam.bench.cli import comparisons, runs, studies

COMMANDS = {
    "demo": studies.demo,
    "speed": studies.speed,
    "theory": studies.theory,
    "valley": studies.valley,
    "tasks": runs.list_tasks,
    "run": runs.run_one,
    "recipes": comparisons.list_recipes,
    "sweep": comparisons.sweep_recipe,
    "evidence": comparisons.evidence,
    "findings": comparisons.findings,
    "report": comparisons.report,
    "info": studies.info,
}
DATA_COMMANDS = {"list": runs.list_data, "get": runs.get_data}


def make_app() -> typer.Typer:
    """The command line as typer has it."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback(invoke_without_command=True)(hvadam)
    for name, command in COMMANDS.items():
        app.command(name)(command)
    data = typer.Typer(rich_markup_mode=None)
    for name, command in DATA_COMMANDS.items():
        data.command(name)(command)
    app.add_typer(data, name="data", help="List data sets, and download them.")
    return app


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
