"""Commands that study the optimizers themselves, and this machine."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hvadam_bench.cli.arguments import (
    Plugins,
    Project,
    make_directory,
    parse_count,
    parse_names,
    parse_number,
)
from hvadam_bench.cli.errors import keeping


def theory(
    rounds: Annotated[
        int, typer.Option(parser=parse_count, metavar="N", help="Rounds of each problem.")
    ] = 100_000,
    out: Project = Path("theory-results"),
) -> None:
    """Measure the paper's theorems beside their bounds, write numbers, figures and a page."""
    from hvadam_bench.cli.wiring import measure_theorems

    for folder in ("results", "docs/figures"):
        make_directory(out / folder)
    measure_theorems(rounds, out, Console())


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
    condition: Annotated[
        bool,
        typer.Option(
            "--condition",
            help="Race down quadratics of growing condition numbers instead; some minutes.",
        ),
    ] = False,
    out: Project = Path("valley-results"),
    plugins: Plugins = None,
) -> None:
    """Race optimizers on the paper's toy functions from hundreds of starts; resumes."""
    from hvadam_bench.cli.wiring import draw_paths, race, race_by_condition
    from hvadam_bench.contenders import TRIAL, get, names
    from hvadam_bench.studies.toy_functions.functions import FUNCTIONS, Problem
    from hvadam_bench.studies.toy_functions.result import PAPER_FOUR
    from hvadam_bench.studies.toy_functions.starts import parse_start

    if everyone and contenders is not None:
        raise typer.BadParameter("choose either --contenders or --all.", param_hint="'--all'")
    # Races are of single steps, and many starts at once: there is no line to search along.
    known = [name for name in names() if not get(name).closure]
    racers = [name for name in known if name != TRIAL] if everyone else list(PAPER_FOUR)
    if contenders is not None:
        racers = parse_names(contenders, known, "contender", "'--contenders'")
    try:
        problems = [
            Problem.of(name, angle, dimension)
            for name in parse_names(functions, FUNCTIONS, "function", "'--functions'")
        ]
        at = None if start is None else parse_start(start, problems)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    make_directory(out / "docs" / "figures")
    if condition:
        make_directory(out / "results")
        race_by_condition(out, Console())
    elif at is not None:
        draw_paths(problems, racers, steps, out, Console(), at)
    else:
        make_directory(out / "results")
        with keeping(f"the runs in {out / 'valley-runs'}"):
            race(problems, racers, steps, out, Console())
