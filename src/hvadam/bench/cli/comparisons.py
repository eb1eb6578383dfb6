"""Commands that compare optimizers over many trainings."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console

from hvadam.bench.cli.arguments import (
    Records,
    Some,
    Workers,
    make_directory,
    parse_count,
    parse_names,
)
from hvadam.bench.cli.errors import fail


def list_recipes(
    store: Annotated[
        Path, typer.Option(metavar="DIR", help="Whose records tell how long runs take.")
    ] = Path("runs"),
) -> None:
    """Show the recipes: what each makes again, of which tasks, and what it costs."""
    from hvadam.bench.records import Store
    from hvadam.bench.standings import recipes_table

    Console().print(recipes_table(Store(store)))


def sweep_recipe(
    recipe: Annotated[str, typer.Argument(help="As `hvadam recipes` has it.")],
    store: Records = Path("runs"),
    workers: Workers = None,
    engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Of a Ray cluster that is there.")
    ] = None,
    contenders: Some = None,
    tasks: Some = None,
    seeds: Annotated[
        int | None, typer.Option(parser=parse_count, metavar="N", help="Runs of each winner.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="smoke, laptop or paper; the recipe's if not given.")
    ] = None,
    pruner: Annotated[
        str | None, typer.Option(help="none, median or halving; the recipe's if not given.")
    ] = None,
) -> None:
    """Tune every contender alike, run the winners with fresh seeds; skips what is recorded."""
    from hvadam.bench import recipes
    from hvadam.bench.engines import make_engine
    from hvadam.bench.records import Store
    from hvadam.bench.search import PrunerName, narrowed
    from hvadam.bench.standings import sweep_and_show

    try:
        chosen = recipes.get(recipe)
    except ValueError as error:
        raise typer.Exit(fail(str(error))) from error
    if not chosen.studies:
        raise typer.Exit(fail(f"{recipe} is no sweep; type: {'; '.join(chosen.commands)}"))
    entered = [entry.contender for study in chosen.studies for entry in study.entries]
    studies = narrowed(
        chosen.studies,
        tasks=tasks and parse_names(tasks, chosen.tasks, "task", "'--tasks'"),
        contenders=contenders
        and parse_names(contenders, dict.fromkeys(entered), "contender", "'--contenders'"),
        seeds=seeds,
        scale=scale,
        pruner=pruner and parse_names(pruner, get_args(PrunerName), "pruner", "'--pruner'")[0],
    )
    parse_names(engine, ("local", "ray"), "engine", "'--engine'")
    if address is not None and engine != "ray":
        raise typer.BadParameter("is for --engine ray.", param_hint="'--address'")
    if engine == "ray" and find_spec("ray") is None:
        raise typer.Exit(fail("--engine ray needs ray: pip install 'hvadam[ray]'"))
    make_directory(store, "'--store'")
    records = Store(store)
    if not sweep_and_show(
        studies, records, make_engine(engine, records, workers, address), Console()
    ):
        raise typer.Exit(1)


def evidence(
    parts: Annotated[
        str, typer.Option(metavar="NAMES", help="Only these; commas between them.")
    ] = "tasks,ablation,sensitivity,generative",
    out: Records = Path("results/evidence"),
    workers: Workers = None,
) -> None:
    """Make the whole comparison, hours of it; goes on where the records end."""
    from hvadam.bench.evidence import PARTS, gather

    chosen = parse_names(parts, PARTS, "part", "'--parts'")
    make_directory(out)
    if not gather(out, tuple(part for part in PARTS if part in chosen), workers, Console()):
        raise typer.Exit(1)


def findings(
    evidence: Annotated[
        Path, typer.Option(metavar="DIR", help="Where `hvadam evidence` put its records.")
    ] = Path("results/evidence"),
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where README.md, docs/ and results/ are.")
    ] = Path("."),
) -> None:
    """Tell what the comparison found so far: pages, figures and the README's table."""
    from hvadam.bench.findings import publish

    try:
        publish(evidence, out, Console())
    except ValueError as error:
        raise typer.Exit(fail(str(error))) from error


def report(
    store: Annotated[Path, typer.Option(metavar="DIR", help="Where the records are.")] = Path(
        "runs"
    ),
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Also write the tables as Markdown, beside it.")
    ] = False,
) -> None:
    """Show what the records say, on one HTML page that needs no network."""
    from hvadam.bench.records import Store
    from hvadam.bench.report import write

    if not store.is_dir():
        raise typer.BadParameter(f"there is no folder {store}.", param_hint="'--store'")
    make_directory(out.parent)
    try:
        written = write(Store(store), out, with_markdown=markdown)
    except ValueError as error:
        raise typer.Exit(fail(str(error))) from error
    for path in written:
        typer.echo(f"wrote {path}")
