"""The commands that are no study: one training, many, and what they left to look at."""

from __future__ import annotations

import shlex
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from hvadam_bench.cli.arguments import (
    Changes,
    Names,
    Plugins,
    Workers,
    complete,
    make_directory,
    parse_changes,
    parse_contenders,
    parse_names,
    parse_seed,
)
from hvadam_bench.cli.errors import FAILED, UNUSABLE, describe, fail, keeping, refusing


def explore() -> None:
    """Open the explorer in the browser: a valley to touch, with optimizers racing in it."""
    _open(Path(__file__).resolve().parents[1] / "explorer" / "index.html")


def list_tasks(plugins: Plugins = None) -> None:
    """Show the tasks, what counts in each, and whether its data is there."""
    from hvadam_bench.cli.lists import tasks_table

    Console().print(tasks_table())


def list_contenders(plugins: Plugins = None) -> None:
    """Show the contenders: their papers, whose code runs, and their defaults."""
    from hvadam_bench.cli.lists import contenders_table

    Console().print(contenders_table())


def list_recipes(store: Path = Path("runs")) -> None:
    """Show the recipes: what each makes again, of which tasks, and what it costs.

    Args:
        store: The folder whose records say how long runs take.
    """
    from hvadam_bench.cli.lists import recipes_table
    from hvadam_bench.running.records import Store

    Console().print(recipes_table(Store(store)))


def list_data() -> None:
    """Show the data sets, which of them are there, and their licences."""
    from hvadam_bench.data.download import show_list

    show_list(Console())


def get_data(name: Annotated[str, typer.Argument(autocompletion=complete("data"))]) -> None:
    """Download a data set from its makers, or say what to put where; resumes.

    Args:
        name: A data set, as `hvadam data list` names it.
    """
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


def run(
    task: Annotated[str, typer.Argument(autocompletion=complete("tasks"))],
    contender: Annotated[str, typer.Argument(autocompletion=complete("contenders"))],
    lr: float | None = None,
    changes: Changes = None,
    scale: str = "laptop",
    seed: Annotated[int, typer.Option(parser=parse_seed, metavar="N")] = 0,
    protocol: str = "standard",
    variant: str = "",
    threads: int = 1,
    store: Path = Path("runs"),
    plugins: Plugins = None,
) -> None:
    """Train one contender on one task and record it; resumes where it was interrupted.

    Args:
        task: A task, as `hvadam tasks` names it.
        contender: A contender, as `hvadam contenders` names it.
        lr: The learning rate; the contender's own if not given.
        scale: The scale: smoke, laptop or paper.
        seed: The seed of weights, batches and dropout.
        protocol: The protocol: standard or inherited.
        variant: A name for the options, in reports.
        threads: How many threads torch may use.
        store: The folder for records and checkpoints.
    """
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


def sweep(
    recipe: Annotated[str, typer.Argument(autocompletion=complete("studies._recipes", "tasks"))],
    store: Path = Path("runs"),
    workers: Workers = None,
    engine: Literal["local", "ray"] = "local",
    address: Annotated[str | None, typer.Option(metavar="HOST:PORT")] = None,
    contenders: Names = None,
    reference: str | None = None,
    tasks: Names = None,
    changes: Changes = None,
    rates: tuple[float, ...] = (),
    seeds: int | None = None,
    scale: str | None = None,
    pruner: Literal["none", "median", "halving"] | None = None,
    plugins: Plugins = None,
) -> None:
    """Tune every contender alike, run the winners with fresh seeds; skips what is recorded.

    Args:
        recipe: A name that `hvadam recipes` lists, or a task.
        store: The folder for records and checkpoints.
        engine: The engine: local or ray.
        address: The address of a running Ray cluster.
        reference: The contender to compare with; the recipe's own if it runs, or the first.
        rates: Try these learning rates with everyone instead of a search; commas between them.
        seeds: How many runs each winner gets.
        scale: The scale: smoke, laptop or paper; the recipe's scale if not given.
        pruner: The pruner: none, median or halving; the recipe's pruner if not given.
    """
    from hvadam_bench.cli.showing import sweep_and_show
    from hvadam_bench.running.options import check
    from hvadam_bench.running.records import Store
    from hvadam_bench.studies import _recipes as recipes
    from hvadam_bench.sweeping.engines import make_engine
    from hvadam_bench.sweeping.search import narrowed
    from hvadam_bench.sweeping.sweep import Sweep

    with refusing():
        chosen = recipes.get(recipe)
    if not chosen.studies:
        raise typer.Exit(fail(f"{recipe} is no sweep; type: {'; '.join(chosen.commands)}"))
    options, settings = parse_changes(changes or [])
    if "lr" in options:
        raise typer.BadParameter("name learning rates with --rates.", param_hint="'--set'")
    if rates and min(rates) <= 0:
        raise typer.BadParameter(
            f"must be numbers above 0, got {min(rates):g}.", param_hint="'--rates'"
        )
    studies = narrowed(
        chosen.studies,
        tasks=tasks and parse_names(tasks, chosen.tasks, "task", "'--tasks'"),
        contenders=contenders and parse_contenders(contenders),
        reference=reference and parse_contenders(reference, "'--reference'")[0],
        options=options,
        settings=settings,
        rates=sorted(rates),
        seeds=seeds,
        scale=scale,
        pruner=pruner,
    )
    if changes:
        with refusing(ValueError, TypeError):
            for arm in (arm for study in studies for arm in study.arms()):
                check(arm.judging(arm.trials[0].options if arm.trials else {})[0])
    if address is not None and engine != "ray":
        raise typer.BadParameter("is for --engine ray.", param_hint="'--address'")
    if engine == "ray" and find_spec("ray") is None:
        raise typer.Exit(fail("--engine ray needs ray: pip install 'hvadam[ray]'"))
    make_directory(store, "'--store'")
    records = Store(store)
    planned = Sweep(studies, records, recipe)
    with keeping(f"what is recorded in {store}, and checkpoints of what was under way"):
        started = make_engine(engine, records, workers, address)
        if not sweep_and_show(planned, started, Console()):
            raise typer.Exit(FAILED)


def report(
    store: Path = Path("runs"),
    out: Annotated[Path, typer.Option(metavar="FILE")] = Path("report.html"),
    markdown: Annotated[bool, typer.Option("--markdown")] = False,
    plugins: Plugins = None,
) -> None:
    """Show what the records say, on one HTML page that needs no network.

    Args:
        store: The folder of the records, packed or not.
        out: The page to write.
        markdown: Also write the tables as Markdown, in the same folder.
    """
    from hvadam_bench.pages.report import write
    from hvadam_bench.running.records import Store
    from hvadam_bench.running.sources import current

    if out.is_dir():
        raise typer.BadParameter(
            f"{out} is a directory; name a file, such as {out / 'report.html'}.",
            param_hint="'--out'",
        )
    make_directory(out.parent)
    records = Store(store, packed=store)
    with refusing():
        shown, left_out = current(records.contents())
        for line in left_out:
            fail(line)
        if not shown:
            raise typer.BadParameter(
                f"there are no records in {store}. Make some with `hvadam sweep demo`, or name "
                "the folder that has them; those of `hvadam demo` are in demo/runs.",
                param_hint="'--store'",
            )
        written = write(records, out, with_markdown=markdown)
    for path in written:
        typer.echo(f"wrote {path}")
    typer.echo(f"to look at it: hvadam open {shlex.quote(str(out))}")


def open_report(
    page: Annotated[Path | None, typer.Argument(show_default=False)] = None,
) -> None:
    """Open a report in the browser, the last one if none is named.

    Args:
        page: The page; the newest report.html here, or in a folder here, if not given.
    """
    pages = [page] if page else [*Path().glob("report.html"), *Path().glob("*/report.html")]
    pages = [one for one in pages if one.is_file()]
    if not pages:
        missing = f"there is no {page}" if page else "there is no report.html here"
        raise typer.Exit(fail(f"{missing}; `hvadam report` writes one."))
    _open(max(pages, key=lambda one: one.stat().st_mtime).resolve())


def _open(page: Path) -> None:
    """Open a file in the browser, and say where it is."""
    typer.echo(f"opening {page}")
    if not webbrowser.open(page.as_uri()):
        raise typer.Exit(fail("no browser could be started here.", FAILED))
