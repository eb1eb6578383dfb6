"""Commands that study the optimizers themselves, and this machine."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hvadam_bench.cli.arguments import (
    Plugins,
    Project,
    make_directory,
    parse_count,
    parse_counts,
    parse_names,
    parse_number,
)
from hvadam_bench.cli.errors import fail, keeping


def speed(
    shapes: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="single, resnet50, lstm, small, huge; commas between them. If not given, all but "
            "huge, or with several numbers of threads all but small.",
        ),
    ] = None,
    jax: Annotated[
        bool, typer.Option("--jax", help="Time HVAdam for JAX instead, beside Optax's Adam.")
    ] = False,
    threads: Annotated[
        str,
        typer.Option(
            metavar="N[,N]",
            help="Threads that torch may use. With several numbers, commas between them, the "
            "native kernel beside fused Adam with as many.",
        ),
    ] = "1",
    quick: Annotated[
        bool, typer.Option("--quick", help="Few, short measurements: to see that it works.")
    ] = False,
    growth: Annotated[
        bool, typer.Option("--growth", help="Also how time grows, up to 100M parameters.")
    ] = False,
    training: Annotated[
        bool,
        typer.Option("--training", help="Instead, whole training steps beside fused AdamW's."),
    ] = False,
    compile_many: Annotated[
        bool,
        typer.Option(
            "--compile-many",
            help="Also time the compiled step of 161 tensors; a quarter of an hour more at first.",
        ),
    ] = False,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the charts and the numbers go.")
    ] = Path("speed-results"),
) -> None:
    """Time a step of HVAdam beside Adam and AdaBelief, print tables, draw charts."""
    from hvadam.info import usable_cores
    from hvadam_bench.cli.wiring import (
        time_jax_steps,
        time_steps,
        time_threads,
        time_training,
    )
    from hvadam_bench.studies.speed.benchmark import within_memory
    from hvadam_bench.studies.speed.contenders import CONTENDERS, MANY
    from hvadam_bench.studies.speed.result import Plan
    from hvadam_bench.studies.speed.shapes import BY_PARAMETERS, BY_TENSORS, SHAPES

    counts = parse_counts(threads, usable_cores(), "'--threads'")
    if len(counts) > 1 and (jax or growth or training):
        raise typer.BadParameter(
            f"several numbers are for steps alone, without --jax, --growth and --training, got "
            f"{threads}.",
            param_hint="'--threads'",
        )
    left_out = "small" if len(counts) > 1 else "huge"
    names = ",".join(name for name in SHAPES if name != left_out) if shapes is None else shapes
    chosen = [SHAPES[name] for name in parse_names(names, SHAPES, "shape", "'--shapes'")]
    if jax:
        _check_jax(growth or training)
    make_directory(out)
    if training:
        time_training(out, Console(), threads=counts[0], quick=quick)
        return
    plan = within_memory(Plan.quick() if quick else Plan())
    if len(counts) > 1:
        time_threads(chosen, counts, plan, out, Console())
        return
    if jax:
        try:
            time_jax_steps(chosen, plan, out, Console(), threads=counts[0])
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="'--threads'") from error
        return
    growing = (BY_PARAMETERS, BY_TENSORS) if growth else None
    contenders = CONTENDERS
    if compile_many:
        contenders = tuple(
            replace(one, most_tensors=one.most_tensors and MANY) for one in CONTENDERS
        )
    time_steps(chosen, contenders, plan, out, Console(), threads=counts[0], growing=growing)


def _check_jax(others: bool) -> None:
    """Refuse ``--jax`` beside other choices of what is timed, and where JAX is not installed."""
    if others:
        raise typer.BadParameter("choose one of --jax, --growth, --training.", param_hint="'--jax'")
    if find_spec("jax") is None or find_spec("optax") is None:
        reason = "--jax needs JAX and Optax, not installed here: pip install 'hvadam[jax]'"
        raise typer.Exit(fail(reason))


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


def throughput(
    tasks: Annotated[
        str, typer.Option(metavar="NAMES", help="Which; commas between them.")
    ] = "fashion_mnist_cnn,digits_cnn",
    plugins: Plugins = None,
) -> None:
    """Time the runner beside a loop written by hand, in blocks of steps that take turns."""
    from hvadam_bench.cli.wiring import bar
    from hvadam_bench.pages.throughput import throughput_table
    from hvadam_bench.running.config import RunConfig
    from hvadam_bench.studies.speed.throughput import measure, summarize
    from hvadam_bench.tasks import names

    chosen = parse_names(tasks, names(), "task", "'--tasks'")
    found, console = [], Console()
    try:
        with bar(console) as on_progress:  # between the timed runs, so that it disturbs none
            for task in chosen:
                on_progress(task, 0.0)
                found += summarize(task, measure(RunConfig(task, "adam")))
                on_progress(task, 1 / len(chosen))
    except ValueError as error:  # the data is not here
        raise typer.Exit(fail(str(error))) from error
    console.print(throughput_table(found).terminal())
