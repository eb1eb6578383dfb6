"""`hvadam study NAME`: a command of every study, with options that its plan's signature has.

A study prints nothing and parses nothing; here a plain function becomes a command.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from hvadam_bench import studies
from hvadam_bench.cli.arguments import Plugins, Workers, make_directory, parse_count, parse_number
from hvadam_bench.cli.errors import FAILED, keeping, missing_packages, refusing
from hvadam_bench.pages.formatting import duration
from hvadam_bench.pages.tables import Table
from hvadam_bench.studies import Place, Study
from hvadam_bench.terminal import Lines, make_bars, print_line


def make_command(study: Study) -> Callable[..., None]:
    """Return a study as a function whose signature has the options of its command."""
    own = {
        name: _option(name, parameter.default, kind, about)
        for name, (parameter, kind, about) in _parameters(study.plan).items()
    }

    def command(
        out: Annotated[
            Path,
            typer.Option(
                metavar="DIR", help="The folder under which results/ and docs/ are written."
            ),
        ] = Path(study.folder or f"{study.name}-results"),
        runs: Annotated[
            Path, typer.Option(metavar="DIR", help="The folder for runs that are not packed yet.")
        ] = Path("runs/studies"),
        workers: Workers = None,
        render_only: Annotated[
            bool,
            typer.Option("--render", help="Only write the pages, from the results in --out."),
        ] = False,
        plugins: Plugins = None,
        **options: Any,
    ) -> None:
        with refusing():
            if render_only:
                _tell(study.render(study.read(out), out))
            else:
                given = {name: _value(own[name][1], options[name]) for name in own}
                place = Place(out, out / "runs" if study.folder else runs)
                _answer(study, study.plan(**given), place, workers)

    shared = inspect.signature(command, eval_str=True)
    needless = ("options", "runs") if study.folder else ("options",)
    parameters = [one for name, one in shared.parameters.items() if name not in needless]
    parameters[:0] = [one for one, _ in own.values()]
    command.__signature__ = shared.replace(parameters=parameters)  # pyright: ignore[reportFunctionMemberAccess]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__doc__ = study.about
    return command


def _answer(study: Study, plan: Any, place: Place, workers: int | None) -> None:
    """Measure what is planned; print and write what was found."""
    from hvadam_bench.cli.showing import gather_and_show

    if missing_packages():  # what comes last may need them
        raise ModuleNotFoundError
    console, finished = Console(), True
    for folder in ("", "results", "docs/figures"):
        make_directory(place.out / folder)
    with keeping(f"what is recorded in {place.runs}"), bar(console) as shown:

        def sweep(sweeps: Sequence[Any]) -> bool:
            nonlocal finished
            shown.stop()  # a sweep has a bar of its own
            finished = gather_and_show(sweeps, workers, console)
            return finished

        found = study.measure(plan, replace(place, on_progress=shown.advance, sweep=sweep))
    for one in study.tables(found):
        if isinstance(one, Table):
            console.print(one.terminal())
        else:
            console.print(one, markup=False, highlight=False)
    _tell(study.write(found, place.out))
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


class Bar:
    """A bar on a terminal, and lines elsewhere, for work that says how much of it is done.

    It is drawn when it is called, because a thread would disturb what is timed.
    """

    def __init__(self, console: Console) -> None:
        columns = (
            TextColumn("{task.description:<52}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
        )
        self._bars = make_bars(console, *columns, auto_refresh=False)
        self._bars.add_task("", total=1.0)
        self._lines, self._begun = Lines(console), monotonic()
        self.stop = self._bars.stop

    def advance(self, doing: str, share: float) -> None:
        """Show what is being done, and that so much more of all is done."""
        [task] = self._bars.tasks
        self._bars.start()
        self._bars.update(task.id, advance=share, description=doing or None)
        self._bars.refresh()
        done = min(1.0, task.completed)
        left = duration((monotonic() - self._begun) * (1 - done) / done) if done else "unknown time"
        self._lines.tell(f"{task.description}: {done:.0%} of all, about {left} left")


@contextmanager
def bar(console: Console) -> Iterator[Bar]:
    """Enter a context at whose end a bar is gone."""
    shown = Bar(console)
    try:
        yield shown
    finally:
        shown.stop()


def _tell(written: Iterable[Path]) -> None:
    for path in written:
        print_line(f"wrote {path}", Console())


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
