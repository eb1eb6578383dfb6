"""The command line: argument parsing only."""

# Without `from __future__ import annotations`: typer evaluates the annotations of the commands,
# which are nested functions whose names it could not look up from strings.

import os
import sys
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hvadam._version import __version__

if TYPE_CHECKING:
    import typer

# Import name -> package name of what the extra `bench` brings.
_BENCH_PACKAGES = {
    "jinja2": "jinja2",
    "matplotlib": "matplotlib",
    "optuna": "optuna",
    "plotly": "plotly",
    "rich": "rich",
    "sacrebleu": "sacrebleu",
    "scipy": "scipy",
    "sentencepiece": "sentencepiece",
    "sklearn": "scikit-learn",
    "typer": "typer",
}


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        args: The arguments, by default those of the process.

    Returns:
        The exit code: 0, 2 for arguments that cannot be used or missing packages, 130 when
        interrupted.
    """
    try:
        return _run(args)
    except ModuleNotFoundError:
        missing = _missing()
        if not missing:
            raise
        return _fail(f"this command needs {', '.join(missing)}: pip install 'hvadam[bench]'")


def _missing() -> list[str]:
    return [package for name, package in _BENCH_PACKAGES.items() if find_spec(name) is None]


def _run(args: Sequence[str] | None) -> int:
    import typer

    try:
        return _make_app()(args=args, prog_name="hvadam", standalone_mode=False) or 0
    except typer.Abort:
        return 130
    except Exception as error:
        # Usage errors can describe themselves. They have no public class to catch: they are click's
        # with older typers, and of a copy of click inside newer ones.
        describe = getattr(error, "format_message", None)
        if describe is None:
            raise
        return _fail(" ".join(describe().split()))


def _make_app() -> "typer.Typer":
    """The commands; made in a function so that a missing typer is reported, not a traceback."""
    import typer

    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"hvadam {__version__}")
            raise typer.Exit

    @app.callback(invoke_without_command=True)
    def hvadam(
        context: typer.Context,
        version: Annotated[
            bool,
            typer.Option(
                "--version", callback=show_version, is_eager=True, help="Show the version."
            ),
        ] = False,
    ) -> None:
        """HVAdam, a full-dimension adaptive optimizer."""
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    @app.command()
    def demo(
        seeds: Annotated[
            int | None,
            typer.Option(parser=_count, metavar="N", help="Runs of each winner; 3 if not given."),
        ] = None,
        steps: Annotated[
            int, typer.Option(parser=_count, metavar="N", help="Of each race in the valley.")
        ] = 1500,
        out: Annotated[
            Path, typer.Option(metavar="DIR", help="Where the figures and the report go.")
        ] = Path("demo"),
    ) -> None:
        """Race in the valley, tune and train on three small tasks, write a report; resumes."""
        from rich.console import Console

        from hvadam.bench.demo import demonstrate

        if _missing():  # what comes last needs them too
            raise ModuleNotFoundError
        _make_directory(out)
        if not demonstrate(seeds, steps, out, Console()):
            raise typer.Exit(1)

    @app.command()
    def speed(
        shapes: Annotated[
            str,
            typer.Option(
                metavar="NAMES", help="single, resnet50, lstm, small; commas between them."
            ),
        ] = "single,resnet50,lstm,small",
        threads: Annotated[
            int, typer.Option(parser=_count, metavar="N", help="Threads that torch may use.")
        ] = 1,
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
        from rich.console import Console

        from hvadam.bench.speed import SHAPES, benchmark

        names = _names(shapes, SHAPES, "shape", "'--shapes'")
        _make_directory(out)
        benchmark(names, out, Console(), threads=threads, quick=quick, growth=growth)

    @app.command()
    def theory(
        rounds: Annotated[
            int, typer.Option(parser=_count, metavar="N", help="Rounds of each problem.")
        ] = 100_000,
        out: Annotated[
            Path,
            typer.Option(metavar="DIR", help="Under which results/ and docs/ are written."),
        ] = Path("theory-results"),
    ) -> None:
        """Measure the paper's theorems beside their bounds, write numbers, figures and a page."""
        from rich.console import Console

        from hvadam.bench.theory import study

        for folder in ("results", "docs/figures"):
            _make_directory(out / folder)
        study(rounds, out, Console())

    @app.command()
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
            typer.Option(parser=_number, metavar="DEGREES", help="Turn the functions by this."),
        ] = None,
        dimension: Annotated[
            int, typer.Option(parser=_count, metavar="N", help="Of the functions, at least 2.")
        ] = 2,
        steps: Annotated[
            int, typer.Option(parser=_count, metavar="N", help="The budget of a run.")
        ] = 1500,
        out: Annotated[
            Path, typer.Option(metavar="DIR", help="Under which results/ and docs/ are written.")
        ] = Path("valley-results"),
    ) -> None:
        """Race optimizers on the paper's toy functions from hundreds of starts; resumes."""
        from rich.console import Console

        from hvadam.bench import valley
        from hvadam.optimizers import names

        if everyone and contenders is not None:
            raise typer.BadParameter("choose either --contenders or --all.", param_hint="'--all'")
        known = names()
        racers = known if everyone else list(valley.PAPER_FOUR)
        if contenders is not None:
            racers = _names(contenders, known, "contender", "'--contenders'")
        try:
            problems = [
                valley.Problem.of(name, angle, dimension)
                for name in _names(functions, valley.FUNCTIONS, "function", "'--functions'")
            ]
            at = None if start is None else valley.check_start(start, problems)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        _make_directory(out / "docs" / "figures")
        if at is not None:
            valley.draw_paths(problems, racers, steps, at, out, Console())
        else:
            _make_directory(out / "results")
            valley.compare(problems, racers, steps, out, Console())

    data_app = typer.Typer(rich_markup_mode=None)
    app.add_typer(data_app, name="data", help="List data sets, and download them.")

    @data_app.command("list")
    def list_data() -> None:
        """Show the data sets, which of them are there, and their licences."""
        from rich.console import Console

        from hvadam.bench.data.download import show_list

        show_list(Console())

    @data_app.command("get")
    def get_data(
        name: Annotated[str, typer.Argument(help="As `hvadam data list` has it.")],
    ) -> None:
        """Download a data set from its makers, or say what to put where; resumes."""
        from rich.console import Console

        from hvadam.bench import data
        from hvadam.bench.data.download import obtain

        try:
            obtain(data.get(name), data.root(), Console())
        except ValueError as error:  # DataError is one
            raise typer.Exit(_fail(str(error))) from error

    @app.command("tasks")
    def list_tasks() -> None:
        """Show the tasks, what counts in each, and whether its data is there."""
        from rich.console import Console

        from hvadam.bench.summary import tasks_table

        Console().print(tasks_table())

    @app.command("run")
    def run_one(
        task: Annotated[str, typer.Argument(help="As `hvadam tasks` has it.")],
        contender: Annotated[str, typer.Argument(help="Such as hvadam, adam or sgd.")],
        lr: Annotated[
            float | None,
            typer.Option(parser=_number, metavar="X", help="The contender's own if not given."),
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
        seed: Annotated[int, typer.Option(parser=_seed, metavar="N")] = 0,
        protocol: Annotated[str, typer.Option(help="standard or inherited.")] = "standard",
        variant: Annotated[str, typer.Option(help="A name for the options, in reports.")] = "",
        threads: Annotated[
            int, typer.Option(parser=_count, metavar="N", help="Threads that torch may use.")
        ] = 1,
        store: Annotated[
            Path, typer.Option(metavar="DIR", help="Where records and checkpoints go.")
        ] = Path("runs"),
    ) -> None:
        """Train one contender on one task and record it; resumes where it was interrupted."""
        from rich.console import Console

        from hvadam.bench.config import RunConfig
        from hvadam.bench.records import FINAL, Store
        from hvadam.bench.summary import run_and_show
        from hvadam.bench.training import check

        options, settings = _changes(changes or [])
        if lr is not None and options.setdefault("lr", lr) != lr:
            raise typer.BadParameter("choose either --lr or --set lr=.", param_hint="'--lr'")
        config = RunConfig(task, contender, scale, seed, options, settings, protocol, variant)
        try:
            check(config)
            _make_directory(store, "'--store'")
            record = run_and_show(config, Store(store), threads, Console())
        except (ValueError, TypeError) as error:
            raise typer.Exit(_fail(str(error))) from error
        except OSError as error:  # nothing could be recorded
            _fail(error.strerror or str(error))
            raise typer.Exit(1) from error
        if record.status not in FINAL:
            raise typer.Exit(1)

    @app.command("recipes")
    def list_recipes(
        store: Annotated[
            Path, typer.Option(metavar="DIR", help="Whose records tell how long runs take.")
        ] = Path("runs"),
    ) -> None:
        """Show the recipes: what each makes again, of which tasks, and what it costs."""
        from rich.console import Console

        from hvadam.bench.records import Store
        from hvadam.bench.standings import recipes_table

        Console().print(recipes_table(Store(store)))

    @app.command("sweep")
    def sweep_recipe(
        recipe: Annotated[str, typer.Argument(help="As `hvadam recipes` has it.")],
        store: Annotated[
            Path, typer.Option(metavar="DIR", help="Where records and checkpoints go.")
        ] = Path("runs"),
        workers: Annotated[
            int | None,
            typer.Option(
                parser=_count, metavar="N", help="Runs at a time; one a core if not given."
            ),
        ] = None,
        engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
        address: Annotated[
            str | None, typer.Option(metavar="HOST:PORT", help="Of a Ray cluster that is there.")
        ] = None,
        contenders: Annotated[
            str | None, typer.Option(metavar="NAMES", help="Only these; commas between them.")
        ] = None,
        tasks: Annotated[
            str | None, typer.Option(metavar="NAMES", help="Only these; commas between them.")
        ] = None,
        seeds: Annotated[
            int | None, typer.Option(parser=_count, metavar="N", help="Runs of each winner.")
        ] = None,
        scale: Annotated[
            str | None, typer.Option(help="smoke, laptop or paper; the recipe's if not given.")
        ] = None,
        pruner: Annotated[
            str | None, typer.Option(help="none, median or halving; the recipe's if not given.")
        ] = None,
    ) -> None:
        """Tune every contender alike, run the winners with fresh seeds; skips what is recorded."""
        from typing import get_args

        from rich.console import Console

        from hvadam.bench import recipes
        from hvadam.bench.engines import make_engine
        from hvadam.bench.records import Store
        from hvadam.bench.search import PrunerName, narrowed
        from hvadam.bench.standings import sweep_and_show

        try:
            chosen = recipes.get(recipe)
        except ValueError as error:
            raise typer.Exit(_fail(str(error))) from error
        if not chosen.studies:
            raise typer.Exit(_fail(f"{recipe} is no sweep; type: {'; '.join(chosen.commands)}"))
        entered = [entry.contender for study in chosen.studies for entry in study.entries]
        studies = narrowed(
            chosen.studies,
            tasks=tasks and _names(tasks, chosen.tasks, "task", "'--tasks'"),
            contenders=contenders
            and _names(contenders, dict.fromkeys(entered), "contender", "'--contenders'"),
            seeds=seeds,
            scale=scale,
            pruner=pruner and _names(pruner, get_args(PrunerName), "pruner", "'--pruner'")[0],
        )
        _names(engine, ("local", "ray"), "engine", "'--engine'")
        if address is not None and engine != "ray":
            raise typer.BadParameter("is for --engine ray.", param_hint="'--address'")
        if engine == "ray" and find_spec("ray") is None:
            raise typer.Exit(_fail("--engine ray needs ray: pip install 'hvadam[ray]'"))
        _make_directory(store, "'--store'")
        records = Store(store)
        if not sweep_and_show(
            studies, records, make_engine(engine, records, workers, address), Console()
        ):
            raise typer.Exit(1)

    @app.command()
    def evidence(
        parts: Annotated[
            str, typer.Option(metavar="NAMES", help="Only these; commas between them.")
        ] = "tasks,ablation,sensitivity,generative",
        out: Annotated[
            Path, typer.Option(metavar="DIR", help="Where records and checkpoints go.")
        ] = Path("results/evidence"),
        workers: Annotated[
            int | None,
            typer.Option(
                parser=_count, metavar="N", help="Runs at a time; one a core if not given."
            ),
        ] = None,
    ) -> None:
        """Make the whole comparison, hours of it; goes on where the records end."""
        from rich.console import Console

        from hvadam.bench.evidence import PARTS, gather

        chosen = _names(parts, PARTS, "part", "'--parts'")
        _make_directory(out)
        if not gather(out, tuple(part for part in PARTS if part in chosen), workers, Console()):
            raise typer.Exit(1)

    @app.command()
    def findings(
        evidence: Annotated[
            Path, typer.Option(metavar="DIR", help="Where `hvadam evidence` put its records.")
        ] = Path("results/evidence"),
        out: Annotated[
            Path, typer.Option(metavar="DIR", help="Where README.md, docs/ and results/ are.")
        ] = Path("."),
    ) -> None:
        """Tell what the comparison found so far: pages, figures and the README's table."""
        from rich.console import Console

        from hvadam.bench.findings import publish

        try:
            publish(evidence, out, Console())
        except ValueError as error:
            raise typer.Exit(_fail(str(error))) from error

    @app.command()
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
        _make_directory(out.parent)
        try:
            written = write(Store(store), out, with_markdown=markdown)
        except ValueError as error:
            raise typer.Exit(_fail(str(error))) from error
        for path in written:
            typer.echo(f"wrote {path}")

    @app.command()
    def info(
        as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
    ) -> None:
        """Show versions, the machine, and which kernels work on it."""
        from rich.console import Console

        from hvadam.bench.info import show

        show(Console(), as_json)

    return app


def _count(text: str) -> int:
    """Typer's own check of a range would not repeat the value it refuses."""
    import typer

    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise typer.BadParameter(f"must be a whole number of at least 1, got {text}.")
    return count


def _seed(text: str) -> int:
    """Like ``_count``, from 0."""
    import typer

    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if seed < 0:
        raise typer.BadParameter(f"must be a whole number of at least 0, got {text}.")
    return seed


def _changes(given: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the contender and settings of the task, out of "gamma=0.1" and "task.epochs=3".

    Values are Python's literals; what is none is a string.
    """
    import ast

    import typer

    options, settings = {}, {}
    for change in given:
        name, equals, text = change.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"must be NAME=VALUE, got {change}.", param_hint="'--set'")
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            value = text
        if name.startswith("task."):
            settings[name.removeprefix("task.")] = value
        else:
            options[name] = value
    return options, settings


def _number(text: str) -> float:
    """Like ``_count``."""
    import typer

    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number, got {text}.") from None


def _names(text: str, known: Collection[str], what: str, option: str) -> list[str]:
    """Names out of a list with commas, each once."""
    import typer

    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise typer.BadParameter(
                f"there is no {what} {name!r}; choose from {', '.join(known)}.", param_hint=option
            )
    return list(dict.fromkeys(names))


def _make_directory(out: Path, option: str = "'--out'") -> None:
    """Make it now: nobody wants to hear after the training that nothing can be written."""
    import typer

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror
    else:
        reason = None if os.access(out, os.W_OK) else "Permission denied"
    if reason:
        raise typer.BadParameter(f"cannot write to {out}: {reason}.", param_hint=option)


def _fail(message: str) -> int:
    print(f"hvadam: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
