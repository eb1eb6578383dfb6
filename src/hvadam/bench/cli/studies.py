"""Commands that study the optimizers themselves, and this machine."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hvadam.bench.cli.arguments import (
    Project,
    Threads,
    make_directory,
    parse_count,
    parse_names,
    parse_number,
)
from hvadam.bench.cli.errors import missing_packages


def demo(
    seeds: Annotated[
        int | None,
        typer.Option(parser=parse_count, metavar="N", help="Runs of each winner; 3 if not given."),
    ] = None,
    steps: Annotated[
        int, typer.Option(parser=parse_count, metavar="N", help="Of each race in the valley.")
    ] = 1500,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the figures and the report go.")
    ] = Path("demo"),
) -> None:
    """Race in the valley, tune and train on three small tasks, write a report; resumes."""
    from hvadam.bench.demo import demonstrate

    if missing_packages():  # what comes last needs them too
        raise ModuleNotFoundError
    make_directory(out)
    if not demonstrate(seeds, steps, out, Console()):
        raise typer.Exit(1)


def speed(
    shapes: Annotated[
        str,
        typer.Option(metavar="NAMES", help="single, resnet50, lstm, small; commas between them."),
    ] = "single,resnet50,lstm,small",
    threads: Threads = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few, short measurements: to see that it works.")
    ] = False,
    growth: Annotated[
        bool, typer.Option("--growth", help="Also how time grows, up to 100M parameters.")
    ] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the charts and the numbers go.")
    ] = Path("speed-results"),
) -> None:
    """Time a step of HVAdam beside Adam and AdaBelief, print tables, draw charts."""
    from hvadam.bench.speed import SHAPES, benchmark

    names = parse_names(shapes, SHAPES, "shape", "'--shapes'")
    make_directory(out)
    benchmark(names, out, Console(), threads=threads, quick=quick, growth=growth)


def theory(
    rounds: Annotated[
        int, typer.Option(parser=parse_count, metavar="N", help="Rounds of each problem.")
    ] = 100_000,
    out: Project = Path("theory-results"),
) -> None:
    """Measure the paper's theorems beside their bounds, write numbers, figures and a page."""
    from hvadam.bench.theory import study

    for folder in ("results", "docs/figures"):
        make_directory(out / folder)
    study(rounds, out, Console())


def valley(
    functions: Annotated[
        str, typer.Option(metavar="NAMES", help="f1, f2, f3, f4, fig3; commas between them.")
    ] = "f1,f2,f3,f4,fig3",
    contenders: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Who races; the paper's four if not given."),
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="Every contender races.")] = False,
    start: Annotated[
        str | None,
        typer.Option(metavar="X,Y", help="Only draw the paths from there, without a race."),
    ] = None,
    angle: Annotated[
        float | None,
        typer.Option(parser=parse_number, metavar="DEGREES", help="Turn the functions by this."),
    ] = None,
    dimension: Annotated[
        int, typer.Option(parser=parse_count, metavar="N", help="Of the functions, at least 2.")
    ] = 2,
    steps: Annotated[
        int, typer.Option(parser=parse_count, metavar="N", help="The budget of a run.")
    ] = 1500,
    out: Project = Path("valley-results"),
) -> None:
    """Race optimizers on the paper's toy functions from hundreds of starts; resumes."""
    from hvadam.bench import valley
    from hvadam.optimizers import names

    if everyone and contenders is not None:
        raise typer.BadParameter("choose either --contenders or --all.", param_hint="'--all'")
    known = names()
    racers = known if everyone else list(valley.PAPER_FOUR)
    if contenders is not None:
        racers = parse_names(contenders, known, "contender", "'--contenders'")
    try:
        problems = [
            valley.Problem.of(name, angle, dimension)
            for name in parse_names(functions, valley.FUNCTIONS, "function", "'--functions'")
        ]
        at = None if start is None else valley.check_start(start, problems)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    make_directory(out / "docs" / "figures")
    if at is not None:
        valley.draw_paths(problems, racers, steps, at, out, Console())
    else:
        make_directory(out / "results")
        valley.compare(problems, racers, steps, out, Console())


def info(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Show versions, the machine, and which kernels work on it."""
    from hvadam.bench.info import show

    show(Console(), as_json)
