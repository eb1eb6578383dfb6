"""`hvadam study NAME`: a command of every study, with options that its plan's signature has.

A study prints nothing and parses nothing; here a plain function becomes a command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, TimeRemainingColumn

from hvadam_bench import studies
from hvadam_bench.cli.arguments import Plugins, Workers, make_command, make_directory, options_of
from hvadam_bench.cli.errors import FAILED, keeping, missing_packages, refusing
from hvadam_bench.pages.formatting import duration
from hvadam_bench.pages.tables import Table
from hvadam_bench.studies import Place, Study
from hvadam_bench.terminal import Lines, make_bars, print_line


def make_app(wanted: str | None) -> typer.Typer:
    """Return the studies as commands.

    Args:
        wanted: The one that is to run; others are then left out, which saves loading them.
    """
    app = typer.Typer(no_args_is_help=True)
    known = studies.names()
    for name in [wanted] if wanted in known else known:
        study = studies.get(name)
        app.command(name, short_help=study.about)(command_of(study))
    app.callback()(lambda: None)  # with one command it is still named
    return app


def command_of(study: Study) -> Callable[..., None]:
    """Return a study as a command."""

    def command(
        out: Path = Path(study.folder or f"{study.name}-results"),
        runs: Path = Path("runs/studies"),
        workers: Workers = None,
        render: Annotated[bool, typer.Option("--render")] = False,
        plugins: Plugins = None,
        **options: Any,
    ) -> None:
        """Answer the study's question.

        Args:
            out: The folder under which results/ and docs/ are written.
            runs: The folder for runs that are not packed yet.
            render: Only write the pages, from the results in --out.
        """
        with refusing():
            if render:
                _tell(study.render(study.read(out), out))
            else:
                given = {one.name: options[one.name] for one in own}
                place = Place(out, out / "runs" if study.folder else runs)
                _answer(study, study.plan(**given), place, workers)

    own = options_of(study.plan)
    shared = [one for one in options_of(command) if not (study.folder and one.name == "runs")]
    return make_command(command, [*own, *shared], study.about)


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


class Bar:
    """A bar on a terminal, and lines elsewhere, for work that says how much of it is done.

    It is drawn when it is called, because a thread would disturb what is timed.
    """

    def __init__(self, console: Console) -> None:
        columns = (
            *("{task.description:<52}", BarColumn(bar_width=None)),
            *("{task.percentage:>3.0f}%", TimeRemainingColumn()),
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
