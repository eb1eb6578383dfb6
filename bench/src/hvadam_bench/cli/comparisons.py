"""Commands that compare optimizers over many trainings."""

import shlex
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console

from hvadam_bench.cli.arguments import (
    Changes,
    Plugins,
    Records,
    Some,
    Workers,
    complete,
    make_directory,
    parse_changes,
    parse_contenders,
    parse_count,
    parse_names,
    parse_rates,
    refuse_directory,
)
from hvadam_bench.cli.errors import FAILED, fail, keeping, refusing


def list_recipes(
    store: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder whose records say how long runs take.")
    ] = Path("runs"),
) -> None:
    """Show the recipes: what each makes again, of which tasks, and what it costs."""
    from hvadam_bench.cli.lists import recipes_table
    from hvadam_bench.running.records import Store

    Console().print(recipes_table(Store(store)))


def sweep_recipe(
    recipe: Annotated[
        str,
        typer.Argument(
            help="A name that `hvadam recipes` lists, or a task.",
            autocompletion=complete("studies._recipes", "tasks"),
        ),
    ],
    store: Records = Path("runs"),
    workers: Workers = None,
    engine: Annotated[str, typer.Option(help="The engine: local or ray.")] = "local",
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="The address of a running Ray cluster.")
    ] = None,
    contenders: Some = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The contender to compare with; the recipe's own if it runs, or the first.",
        ),
    ] = None,
    tasks: Some = None,
    changes: Changes = None,
    rates: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="Try these learning rates with everyone instead of a search; commas between them.",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(parser=parse_count, metavar="N", help="How many runs each winner gets."),
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="smoke, laptop or paper; the recipe's scale if not given.")
    ] = None,
    pruner: Annotated[
        str | None, typer.Option(help="none, median or halving; the recipe's pruner if not given.")
    ] = None,
    plugins: Plugins = None,
) -> None:
    """Tune every contender alike, run the winners with fresh seeds; skips what is recorded."""
    from hvadam_bench.cli.showing import sweep_and_show
    from hvadam_bench.running.options import check
    from hvadam_bench.running.records import Store
    from hvadam_bench.studies import _recipes as recipes
    from hvadam_bench.sweeping.engines import make_engine
    from hvadam_bench.sweeping.search import PrunerName, narrowed
    from hvadam_bench.sweeping.sweep import Sweep

    with refusing():
        chosen = recipes.get(recipe)
    if not chosen.studies:
        raise typer.Exit(fail(f"{recipe} is no sweep; type: {'; '.join(chosen.commands)}"))
    options, settings = parse_changes(changes or [])
    if "lr" in options:
        raise typer.BadParameter("name learning rates with --rates.", param_hint="'--set'")
    studies = narrowed(
        chosen.studies,
        tasks=tasks and parse_names(tasks, chosen.tasks, "task", "'--tasks'"),
        contenders=contenders and parse_contenders(contenders),
        reference=reference and parse_contenders(reference, "'--reference'")[0],
        options=options,
        settings=settings,
        rates=parse_rates(rates) if rates else (),
        seeds=seeds,
        scale=scale,
        pruner=pruner and parse_names(pruner, get_args(PrunerName), "pruner", "'--pruner'")[0],
    )
    if changes:
        with refusing((ValueError, TypeError)):
            for arm in (arm for study in studies for arm in study.arms()):
                check(arm.judging(arm.trials[0].options if arm.trials else {})[0])
    parse_names(engine, ("local", "ray"), "engine", "'--engine'")
    if address is not None and engine != "ray":
        raise typer.BadParameter("is for --engine ray.", param_hint="'--address'")
    if engine == "ray" and find_spec("ray") is None:
        raise typer.Exit(fail("--engine ray needs ray: pip install 'hvadam[ray]'"))
    make_directory(store, "'--store'")
    records = Store(store)
    sweep = Sweep(studies, records, recipe)
    with keeping(f"what is recorded in {store}, and checkpoints of what was under way"):
        started = make_engine(engine, records, workers, address)
        if not sweep_and_show(sweep, started, Console()):
            raise typer.Exit(FAILED)


def report(
    store: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder of the records, packed or not.")
    ] = Path("runs"),
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
    markdown: Annotated[
        bool,
        typer.Option("--markdown", help="Also write the tables as Markdown, in the same folder."),
    ] = False,
    plugins: Plugins = None,
) -> None:
    """Show what the records say, on one HTML page that needs no network."""
    from hvadam_bench.pages.report import write
    from hvadam_bench.running.records import Store
    from hvadam_bench.running.sources import current

    refuse_directory(out, "report.html")
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
    page: Annotated[
        Path | None,
        typer.Argument(
            help="The page; the newest report.html here, or in a folder here, if not given.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Open a report in the browser, the last one if none is named."""
    pages = [page] if page else [*Path().glob("report.html"), *Path().glob("*/report.html")]
    pages = [one for one in pages if one.is_file()]
    if not pages:
        missing = f"there is no {page}" if page else "there is no report.html here"
        raise typer.Exit(fail(f"{missing}; `hvadam report` writes one."))
    _open(max(pages, key=lambda one: one.stat().st_mtime).resolve())


def explore() -> None:
    """Open the explorer in the browser: a valley to touch, with optimizers racing in it."""
    _open(Path(__file__).resolve().parents[1] / "explorer" / "index.html")


def _open(page: Path) -> None:
    """Open a file in the browser, and say where it is."""
    typer.echo(f"opening {page}")
    if not webbrowser.open(page.as_uri()):
        raise typer.Exit(fail("no browser could be started here.", FAILED))
