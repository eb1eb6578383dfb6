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
    refuse_directory,
)
from hvadam_bench.cli.errors import FAILED, fail, keeping, missing_packages


def demo(
    seeds: Annotated[
        int | None,
        typer.Option(parser=parse_count, metavar="N", help="Runs of each winner; 10 if not given."),
    ] = None,
    steps: Annotated[
        int, typer.Option(parser=parse_count, metavar="N", help="Of each path in the valley.")
    ] = 1500,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the figures and the report go.")
    ] = Path("demo"),
) -> None:
    """Show in a minute or two where HVAdam pays and where not, and write a report; resumes."""
    from hvadam_bench.cli.demo import demonstrate

    if missing_packages():  # what comes last needs them too
        raise ModuleNotFoundError
    make_directory(out)
    with keeping(f"what is in {out}"):
        if not demonstrate(seeds, steps, out, Console()):
            raise typer.Exit(FAILED)


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


def evaluation_times(
    parts: Annotated[
        str, typer.Option(metavar="NAMES", help="smooth, minibatch; commas between them.")
    ] = "smooth,minibatch",
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the numbers go.")] = Path(
        "results/evaluation-times.json"
    ),
) -> None:
    """Time a gradient evaluation with each contender's step; on a quiet machine, some minutes."""
    from hvadam_bench.cli.wiring import bar
    from hvadam_bench.pages.evaluation_times import evaluation_times_table
    from hvadam_bench.studies.evidence.describe import REFERENCES
    from hvadam_bench.studies.evidence.parts import planned
    from hvadam_bench.studies.evidence.timing import measure

    chosen = parse_names(parts, REFERENCES, "part", "'--parts'")
    refuse_directory(out, "evaluation-times.json")
    studies, console = planned(), Console()
    try:
        with bar(console) as on_progress:
            found = measure({part: studies[part] for part in chosen}, on_progress=on_progress)
    except ValueError as error:  # the data is not here
        raise typer.Exit(fail(str(error))) from error
    found.save(out)
    console.print(evaluation_times_table(found).terminal())
    typer.echo(f"wrote {out}")


def baselines(
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the numbers go.")] = Path(
        "results/baselines.json"
    ),
) -> None:
    """Fit logistic regression and bigrams where small networks are compared; a minute or two."""
    from hvadam_bench.cli.wiring import bar
    from hvadam_bench.pages.baselines import baselines_table
    from hvadam_bench.studies.evidence.baselines import measure

    refuse_directory(out, "baselines.json")
    make_directory(out.parent)
    console = Console()
    try:
        with bar(console) as on_progress:
            found = measure(on_progress=on_progress)
    except ValueError as error:  # the data is not here
        raise typer.Exit(fail(str(error))) from error
    found.save(out)
    console.print(baselines_table(found).terminal())
    typer.echo(f"wrote {out}")
