"""`hvadam study NAME`: a command of every study, with options that its plan's signature has.

A study prints nothing and parses nothing; here a plain function becomes a command.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from hvadam_bench import studies
from hvadam_bench.cli.arguments import Plugins, Workers, make_directory, parse_count, parse_number
from hvadam_bench.cli.errors import FAILED, fail, keeping
from hvadam_bench.pages.formatting import duration
from hvadam_bench.pages.tables import Table
from hvadam_bench.studies import Place, Study
from hvadam_bench.studies._study import OnProgress
from hvadam_bench.terminal import Lines, say


def make_command(study: Study) -> Callable[..., None]:
    """Return a study as a function whose signature has the options of its command."""
    own = {
        name: _option(name, parameter.default, kind, about)
        for name, (parameter, kind, about) in _parameters(study.plan).items()
    }

    def command(
        out: Annotated[
            Path, typer.Option(metavar="DIR", help="Where results/ and docs/ are written.")
        ] = Path(f"{study.name}-results"),
        runs: Annotated[
            Path, typer.Option(metavar="DIR", help="Where runs lie that are not packed yet.")
        ] = Path("runs/studies"),
        workers: Workers = None,
        render_only: Annotated[
            bool,
            typer.Option("--render", help="Only write the pages, from the results in --out."),
        ] = False,
        plugins: Plugins = None,
        **options: Any,
    ) -> None:
        try:
            if render_only:
                _tell(study.render(study.read(out), out))
            else:
                given = {name: _value(own[name][1], options[name]) for name in own}
                _answer(study, study.plan(**given), out, runs, workers)
        except ValueError as error:
            raise typer.Exit(fail(str(error))) from error

    shared = inspect.signature(command, eval_str=True)
    parameters = [one for name, one in shared.parameters.items() if name != "options"]
    parameters[:0] = [one for one, _ in own.values()]
    command.__signature__ = shared.replace(parameters=parameters)  # pyright: ignore[reportFunctionMemberAccess]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__doc__ = study.about
    return command


def _answer(study: Study, plan: Any, out: Path, runs: Path, workers: int | None) -> None:
    """Measure what is planned; print and write what was found."""
    from hvadam_bench.pages.sweeps import gather_and_show

    console, finished = Console(), True
    for folder in ("results", "docs/figures"):
        make_directory(out / folder)

    def sweep(sweeps: Sequence[Any]) -> bool:
        nonlocal finished
        finished = gather_and_show(sweeps, workers, console)
        return finished

    with keeping(f"what is recorded in {runs}"), bar(console) as on_progress:
        found = study.measure(plan, Place(out, runs, on_progress, sweep))
    for one in study.tables(found):
        if isinstance(one, Table):
            console.print(one.terminal())
        else:
            console.print(one, markup=False, highlight=False)
    _tell(study.write(found, out))
    if not finished:
        raise typer.Exit(FAILED)


def _parameters(plan: Callable[..., Any]) -> dict[str, tuple[inspect.Parameter, Any, str]]:
    """Return the parameters of a plan with their types and what its docstring says of them."""
    hints = get_type_hints(plan)
    text = inspect.getdoc(plan) or ""
    section = re.search(r"^Args:\n((?:[ ]{4,}.*\n?)+)", text, re.MULTILINE)
    entries = re.findall(
        r"^    (\w+): ((?:.*\n?)(?:^ {8,}.*\n?)*)", section[1] if section else "", re.MULTILINE
    )
    about = {name: " ".join(words.split()) for name, words in entries}
    return {
        name: (parameter, hints[name], about[name])
        for name, parameter in inspect.signature(plan).parameters.items()
    }


def _option(name: str, default: Any, kind: Any, about: str) -> tuple[inspect.Parameter, Any]:
    """Return an option of a command, and the type that its value is to have."""
    flag = f"--{name.replace('_', '-')}"
    if kind is bool:
        annotation: Any = Annotated[bool, typer.Option(flag, help=about)]
        return _keyword(name, annotation, default), kind
    shown, parse = _form(kind)
    if isinstance(default, tuple):
        default = ",".join(map(str, default)) or None
    option = typer.Option(flag, help=about, metavar=shown, parser=parse)
    return _keyword(name, Annotated[str | None, option], default), kind


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD  # as those that all commands share
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _form(kind: Any) -> tuple[str, Callable[[str], Any]]:
    """Return how a value is shown in the help, and its parser."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        [kind] = [one for one in arguments if one is not types.NoneType]
        return _form(kind)
    if origin is Literal:
        return "|".join(arguments), str
    if origin is tuple:
        return f"{'NAMES' if arguments[0] is str else 'NUMBERS'}", str
    return {int: ("N", parse_count), float: ("X", parse_number)}.get(kind, ("NAME", str))


def _value(kind: Any, given: Any) -> Any:
    """Return the value that a plan takes: lists with commas become tuples."""
    if get_origin(kind) is not tuple:
        return given
    one = get_args(kind)[0]
    parse = {int: parse_count, float: parse_number}.get(one, str.strip)
    return tuple(dict.fromkeys(parse(part) for part in (given or "").split(",") if part.strip()))


@contextmanager
def bar(console: Console) -> Iterator[OnProgress]:
    """Show a bar on a terminal, and lines elsewhere.

    It is drawn when it is called, because a thread would disturb what is timed.
    """
    columns = (
        TextColumn("{task.description:<52}"),
        BarColumn(bar_width=None),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    shown = Progress(
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
        auto_refresh=False,
    )
    task, lines, begun = shown.add_task("", total=1.0), Lines(console), monotonic()

    def advance(doing: str, share: float) -> None:
        shown.start()  # only now: a sweep has a bar of its own
        shown.update(task, advance=share, description=doing or None)
        shown.refresh()
        done = min(1.0, shown.tasks[0].completed)
        left = duration((monotonic() - begun) * (1 - done) / done) if done else "unknown time"
        lines.tell(f"{shown.tasks[0].description}: {done:.0%} of all, about {left} left")

    try:
        yield advance
    finally:
        shown.stop()


def _tell(written: Iterable[Path]) -> None:
    for path in written:
        say(f"wrote {path}", Console())


def make_app(wanted: str | None) -> typer.Typer:
    """Return the studies as commands.

    Args:
        wanted: The one that is to run; others are then left out, which saves loading them.
    """
    app = typer.Typer(no_args_is_help=True)
    known = studies.names()
    for name in [wanted] if wanted in known else known:
        study = studies.get(name)
        app.command(name, short_help=study.about)(make_command(study))
    app.callback()(lambda: None)  # with one command it is still named
    return app
