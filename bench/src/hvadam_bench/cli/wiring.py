"""Running a study with a bar, and publishing what it found: what commands do with their arguments.

A study prints nothing and knows no page; publishing runs nothing. Here they meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from hvadam_bench.pages.formatting import duration
from hvadam_bench.terminal import Lines, say

if TYPE_CHECKING:
    from hvadam_bench.studies._study import OnProgress
    from hvadam_bench.studies.speed.contenders import Contender
    from hvadam_bench.studies.speed.result import Plan
    from hvadam_bench.studies.speed.shapes import Shape


def time_steps(
    shapes: Sequence[Shape],
    contenders: Sequence[Contender],
    plan: Plan,
    out: Path,
    console: Console,
    *,
    threads: int = 1,
    growing: tuple[Sequence[Shape], Sequence[Shape]] | None = None,
) -> None:
    """Time steps; print the tables and how to read them, write numbers and charts."""
    from hvadam_bench.pages import speed
    from hvadam_bench.pages.speed.tables import list_notes, tabulate
    from hvadam_bench.studies.speed.benchmark import benchmark

    with bar(console) as on_progress:
        found = benchmark(
            shapes, contenders, plan, threads=threads, growing=growing, on_progress=on_progress
        )
    for measured in found.shapes:
        console.print(tabulate(found, measured).terminal())
    _say(list_notes(found), console)
    _tell(speed.write(found, out), console)


def time_jax_steps(
    shapes: Sequence[Shape], plan: Plan, out: Path, console: Console, *, threads: int = 1
) -> None:
    """Time steps in JAX; print the tables, write numbers and a page.

    Raises:
        ValueError: There are fewer cores than threads.
    """
    from hvadam_bench.pages.speed import jax_page
    from hvadam_bench.studies.speed.jax_steps import benchmark, limit_threads

    limit_threads(threads)
    with bar(console) as on_progress:
        found = benchmark(shapes, plan, threads=threads, on_progress=on_progress)
    for measured in found.shapes:
        console.print(jax_page.tabulate(found, measured).terminal())
    _tell(jax_page.write(found, out), console)


def time_threads(
    shapes: Sequence[Shape], counts: Sequence[int], plan: Plan, out: Path, console: Console
) -> None:
    """Time steps with several numbers of threads; print the tables, write the numbers."""
    from hvadam_bench.pages.speed.threads import list_notes, tabulate
    from hvadam_bench.studies.speed.threads import benchmark

    placed = next((shape for shape in shapes if shape.name == "huge"), None)
    with bar(console) as on_progress:
        found = benchmark(shapes, counts, plan, placed=placed, on_progress=on_progress)
    for measured in found.shapes:
        console.print(tabulate(found, measured).terminal())
    _say(list_notes(found), console)
    found.save(out / "speed-threads.json")
    _tell([out / "speed-threads.json"], console)


def time_training(out: Path, console: Console, *, threads: int, quick: bool) -> None:
    """Time whole training steps; print the table, write the numbers."""
    from hvadam_bench.pages.speed.training import READING, tabulate
    from hvadam_bench.studies.speed.training import measure
    from hvadam_bench.studies.speed.workloads import WORKLOADS

    with bar(console) as on_progress:
        found = measure(
            list(WORKLOADS.values()),
            rounds=3 if quick else 7,
            steps=1 if quick else 3,
            threads=threads,
            on_progress=on_progress,
        )
    for trained in found.workloads:
        console.print(tabulate(trained).terminal())
    _say(READING, console)
    found.save(out / "training.json")
    _tell([out / "training.json"], console)


@contextmanager
def bar(console: Console) -> Iterator[OnProgress]:
    """Show a bar on a terminal, and lines elsewhere.

    It is drawn when told, for a thread would disturb what is timed.
    """
    columns = (
        TextColumn("{task.description:<52}"),
        BarColumn(bar_width=None),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    hidden = not console.is_terminal
    with Progress(
        *columns, console=console, transient=True, disable=hidden, auto_refresh=False
    ) as shown:
        task = shown.add_task("", total=1.0)
        lines, begun = Lines(console), monotonic()

        def advance(doing: str, share: float) -> None:
            shown.update(task, advance=share, description=doing or None)
            shown.refresh()
            done = min(1.0, shown.tasks[0].completed)
            left = duration((monotonic() - begun) * (1 - done) / done) if done else "unknown time"
            lines.tell(f"{shown.tasks[0].description}: {done:.0%} of all, about {left} left")

        yield advance


def _say(lines: Iterable[str], console: Console) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False)


def _tell(written: Iterable[Path], console: Console) -> None:
    for path in written:
        say(f"wrote {path}", console)
