"""Commands that study the optimizers themselves, and this machine."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hvadam_bench.cli.arguments import (
    Plugins,
    make_directory,
    parse_count,
    parse_counts,
    parse_names,
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
