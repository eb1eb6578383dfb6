"""Running a study with a bar, and publishing what it found: what commands do with their arguments.

A study prints nothing and knows no page; publishing runs nothing. Here they meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from hvadam_bench.terminal import print_line

if TYPE_CHECKING:
    from hvadam_bench.studies._study import OnProgress
    from hvadam_bench.studies.toy_functions.functions import Array, Problem


def race(
    problems: Sequence[Problem],
    contenders: Sequence[str],
    steps: int,
    out: Path,
    console: Console,
) -> None:
    """Race on toy functions; write results, page and figures.

    Args:
        problems: To race on, all of one dimension.
        contenders: Who races.
        steps: The budget of a run.
        out: A directory that holds ``results`` and ``docs/figures``. ``valley-runs`` in it keeps
            every run, so that a second call goes on from there.
        console: Where progress goes.
    """
    from hvadam_bench.pages import toy_functions
    from hvadam_bench.studies.toy_functions.comparison import compare

    kept = out / "valley-runs"
    if runs := sum(1 for _ in kept.rglob("*.json")):
        print_line(f"resuming: {runs:,} runs are kept in {kept}", console)
    with bar(console) as on_progress:
        found = compare(problems, contenders, steps, kept, on_progress)
    _tell(toy_functions.write(found, out), console)
    draw_paths([one for one in problems if one.dimension == 2], contenders, steps, out, console)


def race_by_condition(out: Path, console: Console) -> None:
    """Race down valleys of growing condition numbers; write results, page and figure."""
    from hvadam_bench.pages.toy_functions import condition as page
    from hvadam_bench.studies.toy_functions import condition as study

    with bar(console) as on_progress:
        found = study.measure(on_progress=on_progress)
    _tell(page.write(found, out), console)


def draw_paths(
    problems: Sequence[Problem],
    contenders: Sequence[str],
    steps: int,
    out: Path,
    console: Console,
    start: Array | None = None,
) -> list[Path]:
    """Draw paths on toy functions from one start, the functions' own if none is given.

    Returns:
        The pictures, one for each function.
    """
    from hvadam_bench.contenders import names
    from hvadam_bench.pages import toy_functions
    from hvadam_bench.pages.toy_functions.paths import few
    from hvadam_bench.studies.toy_functions.paths import follow

    shown = few([name for name in names() if name in contenders])
    found = []
    with bar(console) as on_progress:
        for problem in problems:
            on_progress(f"paths on {problem.label}", 0.0)
            found.append(follow(problem, shown, steps, start))
            on_progress("", 1 / len(problems))
    written = toy_functions.write_paths(found, out)
    _tell(written, console)
    return written


def measure_theorems(rounds: int, out: Path, console: Console) -> None:
    """Measure the theorems; write results, page and figures, and print a summary."""
    from hvadam_bench.pages import theorems
    from hvadam_bench.studies.theorems.measurement import measure

    with bar(console) as on_progress:
        found = measure(rounds, on_progress)
    _say(found.summary(), console)
    _tell(theorems.write(found, out), console)


@contextmanager
def bar(console: Console) -> Iterator[OnProgress]:
    """Enter a context with the bar of studies."""
    from hvadam_bench.cli.study import bar as shown_bar

    with shown_bar(console) as shown:
        yield shown.advance


def _say(lines: Iterable[str], console: Console) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False)


def _tell(written: Iterable[Path], console: Console) -> None:
    for path in written:
        print_line(f"wrote {path}", console)
