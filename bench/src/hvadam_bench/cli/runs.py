"""Commands for one training: its data, its task, the run."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hvadam_bench.cli.arguments import (
    Changes,
    Plugins,
    Records,
    Threads,
    complete,
    make_directory,
    parse_changes,
    parse_number,
    parse_seed,
)
from hvadam_bench.cli.errors import FAILED, UNUSABLE, describe, fail, keeping, refusing


def list_data() -> None:
    """Show the data sets, which of them are there, and their licences."""
    from hvadam_bench.data.download import show_list

    show_list(Console())


def get_data(
    name: Annotated[
        str,
        typer.Argument(
            help="A data set, as `hvadam data list` names it.", autocompletion=complete("data")
        ),
    ],
) -> None:
    """Download a data set from its makers, or say what to put where; resumes."""
    from hvadam_bench import data
    from hvadam_bench.data.download import obtain

    with refusing():
        data_set = data.get(name)
    try:
        with keeping(f"what has arrived in {data.root()}"):
            obtain(data_set, data.root(), Console())
    except ValueError as error:  # without a source it is for people to get
        code = FAILED if data_set.sources else UNUSABLE
        raise typer.Exit(fail(str(error), code)) from error


def list_tasks(plugins: Plugins = None) -> None:
    """Show the tasks, what counts in each, and whether its data is there."""
    from hvadam_bench.cli.lists import tasks_table

    Console().print(tasks_table())


def list_contenders(plugins: Plugins = None) -> None:
    """Show the contenders: their papers, whose code runs, and their defaults."""
    from hvadam_bench.cli.lists import contenders_table

    Console().print(contenders_table())


def run_one(
    task: Annotated[
        str,
        typer.Argument(
            help="A task, as `hvadam tasks` names it.", autocompletion=complete("tasks")
        ),
    ],
    contender: Annotated[
        str,
        typer.Argument(
            help="A contender, as `hvadam contenders` names it.",
            autocompletion=complete("contenders"),
        ),
    ],
    lr: Annotated[
        float | None,
        typer.Option(
            parser=parse_number,
            metavar="X",
            help="The learning rate; the contender's own if not given.",
        ),
    ] = None,
    changes: Changes = None,
    scale: Annotated[str, typer.Option(help="The scale: smoke, laptop or paper.")] = "laptop",
    seed: Annotated[
        int,
        typer.Option(
            parser=parse_seed, metavar="N", help="The seed of weights, batches and dropout."
        ),
    ] = 0,
    protocol: Annotated[
        str, typer.Option(help="The protocol: standard or inherited.")
    ] = "standard",
    variant: Annotated[str, typer.Option(help="A name for the options, in reports.")] = "",
    threads: Threads = 1,
    store: Records = Path("runs"),
    plugins: Plugins = None,
) -> None:
    """Train one contender on one task and record it; resumes where it was interrupted."""
    from hvadam_bench.cli.showing import run_and_show
    from hvadam_bench.running.config import RunConfig
    from hvadam_bench.running.options import check
    from hvadam_bench.running.records import FINAL, Store

    options, settings = parse_changes(changes or [])
    if lr is not None and options.setdefault("lr", lr) != lr:
        raise typer.BadParameter("choose either --lr or --set lr=.", param_hint="'--lr'")
    config = RunConfig(task, contender, scale, seed, options, settings, protocol, variant)
    try:
        check(config)
        make_directory(store, "'--store'")
        with keeping(f"the run's checkpoint in {store}"):
            record = run_and_show(config, Store(store), threads, Console())
    except (ValueError, TypeError) as error:
        raise typer.Exit(fail(str(error))) from error
    except OSError as error:  # nothing could be recorded
        raise typer.Exit(fail(describe(error), FAILED)) from error
    if record.status not in FINAL:
        raise typer.Exit(FAILED)
