"""Commands for one training: its data, its task, the run."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hvadam.bench.cli.arguments import (
    Records,
    Threads,
    make_directory,
    parse_changes,
    parse_number,
    parse_seed,
)
from hvadam.bench.cli.errors import fail


def list_data() -> None:
    """Show the data sets, which of them are there, and their licences."""
    from hvadam.bench.data.download import show_list

    show_list(Console())


def get_data(
    name: Annotated[str, typer.Argument(help="As `hvadam data list` has it.")],
) -> None:
    """Download a data set from its makers, or say what to put where; resumes."""
    from hvadam.bench import data
    from hvadam.bench.data.download import obtain

    try:
        obtain(data.get(name), data.root(), Console())
    except ValueError as error:  # DataError is one
        raise typer.Exit(fail(str(error))) from error


def list_tasks() -> None:
    """Show the tasks, what counts in each, and whether its data is there."""
    from hvadam.bench.summary import tasks_table

    Console().print(tasks_table())


def run_one(
    task: Annotated[str, typer.Argument(help="As `hvadam tasks` has it.")],
    contender: Annotated[str, typer.Argument(help="Such as hvadam, adam or sgd.")],
    lr: Annotated[
        float | None,
        typer.Option(parser=parse_number, metavar="X", help="The contender's own if not given."),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="An option of the contender, or with task.NAME a setting of the task.",
        ),
    ] = None,
    scale: Annotated[str, typer.Option(help="smoke, laptop or paper.")] = "laptop",
    seed: Annotated[int, typer.Option(parser=parse_seed, metavar="N")] = 0,
    protocol: Annotated[str, typer.Option(help="standard or inherited.")] = "standard",
    variant: Annotated[str, typer.Option(help="A name for the options, in reports.")] = "",
    threads: Threads = 1,
    store: Records = Path("runs"),
) -> None:
    """Train one contender on one task and record it; resumes where it was interrupted."""
    from hvadam.bench.config import RunConfig
    from hvadam.bench.records import FINAL, Store
    from hvadam.bench.summary import run_and_show
    from hvadam.bench.training import check

    options, settings = parse_changes(changes or [])
    if lr is not None and options.setdefault("lr", lr) != lr:
        raise typer.BadParameter("choose either --lr or --set lr=.", param_hint="'--lr'")
    config = RunConfig(task, contender, scale, seed, options, settings, protocol, variant)
    try:
        check(config)
        make_directory(store, "'--store'")
        record = run_and_show(config, Store(store), threads, Console())
    except (ValueError, TypeError) as error:
        raise typer.Exit(fail(str(error))) from error
    except OSError as error:  # nothing could be recorded
        fail(error.strerror or str(error))
        raise typer.Exit(1) from error
    if record.status not in FINAL:
        raise typer.Exit(1)
