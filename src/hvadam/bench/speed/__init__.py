"""The step-time benchmark: HVAdam beside Adam and AdaBelief, on the same tensors, in pairs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from hvadam.bench import info
from hvadam.bench.speed import charts, report
from hvadam.bench.speed.contenders import CONTENDERS, Contender
from hvadam.bench.speed.memory import bandwidth
from hvadam.bench.speed.shapes import BY_PARAMETERS, BY_TENSORS, SHAPES, Shape
from hvadam.bench.speed.timing import Growth, Measurement, Plan, measure
from hvadam.bench.speed.timing import Progress as OnProgress


def benchmark(
    names: Sequence[str],
    out: Path,
    console: Console,
    *,
    threads: int = 1,
    quick: bool = False,
    growth: bool = False,
) -> None:
    """Time every contender on every shape, show the tables, write charts and numbers to ``out``.

    Args:
        names: Shapes, out of ``SHAPES``.
        out: An existing directory.
        console: Where progress and tables go.
        threads: How many torch may use.
        quick: Few and short measurements, to see that it works.
        growth: Measure how the time grows with parameters and tensors, too.
    """
    plan = _within_memory(Plan.quick() if quick else Plan())
    run(
        [SHAPES[name] for name in names],
        CONTENDERS,
        plan,
        out,
        console,
        threads=threads,
        growing=(BY_PARAMETERS, BY_TENSORS) if growth else None,
    )


def run(
    shapes: Sequence[Shape],
    contenders: Sequence[Contender],
    plan: Plan,
    out: Path,
    console: Console,
    *,
    threads: int = 1,
    growing: tuple[Sequence[Shape], Sequence[Shape]] | None = None,
) -> None:
    """As ``benchmark``, of any shapes and contenders.

    Args:
        shapes: On which all contenders are timed.
        contenders: Who is timed.
        plan: How much.
        out: An existing directory.
        console: Where progress and tables go.
        threads: How many torch may use.
        growing: Shapes that grow in parameters, and shapes that grow in tensors.
    """
    growers = [contender for contender in contenders if contender.grows]
    short = replace(plan, temporaries=False)
    work = [(shape, contenders, plan) for shape in shapes]
    work += [(shape, growers, short) for part in growing or () for shape in part]
    cache = max(info.caches().values(), default=0)

    with _threads(threads), _progress(work, console) as on_progress:
        rates = bandwidth(elements=max(25_000_000, cache))
        context = report.Context(plan, threads, rates, cache)
        main: list[Measurement] = []
        for shape in shapes:
            main.append(measure(shape, contenders, plan, on_progress=on_progress(shape)))
            console.print(report.table(main[-1], context))
        parts = [
            [measure(shape, growers, short, on_progress=on_progress(shape)) for shape in part]
            for part in growing or ()
        ]
        growth = Growth(*parts) if parts else None
        content = report.as_dict(main, growth, contenders, context)

    for line in report.notes(main, growth, context):
        console.print(line, markup=False, highlight=False)
    written = [out / "speed.json"]
    written[0].write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    if main:
        written.append(out / "speed.png")
        charts.draw(main, context).savefig(written[-1], dpi=150)
    if growth:
        written.append(out / "growth.png")
        charts.draw_growth(growth, context).savefig(written[-1], dpi=150)
    for path in written:
        console.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)


def _within_memory(plan: Plan) -> Plan:
    """Half of the machine's memory at most, where it can be known."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return plan
    return replace(plan, memory=min(plan.memory, physical / 2))


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _progress(
    work: Sequence[tuple[Shape, Sequence[Contender], Plan]], console: Console
) -> Iterator[Callable[[Shape], OnProgress]]:
    """A bar that is drawn between the timed groups only: a thread of its own would disturb them."""
    columns = (
        TextColumn("{task.description:<52}"),
        BarColumn(bar_width=None),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    shown = console.is_terminal
    with Progress(
        *columns, console=console, transient=True, disable=not shown, auto_refresh=False
    ) as bar:
        total = sum(_cost(shape) * len(who) * (1 + plan.rounds) for shape, who, plan in work)
        task = bar.add_task("measuring the memory bandwidth", total=total)
        bar.refresh()

        def on(shape: Shape) -> OnProgress:
            def advance(doing: str, parts: int) -> None:
                bar.update(task, advance=parts * _cost(shape))
                if doing:
                    bar.update(task, description=f"{shape.name}: {doing}")
                    bar.refresh()

            return advance

        yield on


def _cost(shape: Shape) -> float:
    """A guess at the seconds of one part, for the bar."""
    return 0.1 + 6e-9 * shape.parameters + 1e-4 * len(shape.sizes)
