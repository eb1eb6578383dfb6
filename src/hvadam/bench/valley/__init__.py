"""The valley: the paper's toy functions, raced from everywhere instead of from one start.

``valley.json`` of a study holds all that the page and the figures of winners and angles show.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    track,
)

from hvadam._version import __version__
from hvadam.bench.valley import angle, figures, page, paths
from hvadam.bench.valley.functions import FUNCTIONS, Array, Problem
from hvadam.bench.valley.race import COMMON_LR, HUGE, LAST, PAPER_FOUR, TARGET
from hvadam.bench.valley.starts import ACROSS, ALONG, SAMPLE, TUNING
from hvadam.bench.valley.study import LATE, Heat, Result, run_heats
from hvadam.bench.valley.summary import summarize
from hvadam.optimizers import names

__all__ = ["FUNCTIONS", "PAPER_FOUR", "Problem", "check_start", "compare", "draw_paths"]

MANY_DIMENSIONS = 10  # of the angle study beside the plane, when everyone runs


def compare(
    problems: Sequence[Problem],
    contenders: Sequence[str],
    steps: int,
    out: Path,
    console: Console,
) -> None:
    """Run what is not yet in ``out``, and write results, page and figures there.

    Args:
        problems: To race on, all of one dimension. With f2 at its own angle comes the angle study.
        contenders: Who races; if it is everyone, the angle study is made in ten dimensions too.
        steps: The budget.
        out: A directory that holds ``results`` and ``docs/figures``. ``valley-runs`` in it keeps
            every run.
        console: Where progress goes.
    """
    ordered = [name for name in names() if name in contenders]
    heats = [
        Heat(problem, name, "grid", steps, LATE * steps) for problem in problems for name in ordered
    ]
    dimensions = {p.dimension for p in problems if p == Problem.of("f2", None, p.dimension)}
    if dimensions and ordered == names():
        dimensions.add(MANY_DIMENSIONS)
    turning = {n: angle.plan(ordered, n, steps) for n in sorted(dimensions)}
    everything = heats + [heat for plan in turning.values() for heat in plan]
    found = dict(_run(everything, out / "valley-runs", console))
    results = {
        **_context(steps),
        "functions": {
            problem.label: summarize([found[heat][0] for heat in heats if heat.problem == problem])
            for problem in problems
        },
        "angle": {
            str(n): angle.summarize([result for heat in plan for result in found[heat]])
            for n, plan in turning.items()
        },
    }
    written = [out / "results" / "valley.json", out / "docs" / "valley.md"]
    text = json.dumps(results, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    written[0].write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")
    written[1].write_text(page.render(results), encoding="utf-8")
    written += figures.draw_all(results, out / "docs" / "figures")
    flat = [problem for problem in problems if problem.dimension == 2]
    written += _draw(flat, paths.few(ordered), steps, None, out, console)
    _tell(written, console)


def draw_paths(
    problems: Sequence[Problem],
    contenders: Sequence[str],
    steps: int,
    start: Array,
    out: Path,
    console: Console,
) -> None:
    """Only the paths from one start, with the paper's learning rate."""
    ordered = [name for name in names() if name in contenders]
    _tell(_draw(problems, paths.few(ordered), steps, start, out, console), console)


def check_start(text: str, problems: Sequence[Problem]) -> Array:
    """A start out of "x,y", at which all problems are defined.

    Raises:
        ValueError: It is no such start.

    Example:
        >>> check_start("0.5,1", [Problem.of("f2")]).tolist()
        [0.5, 1.0]
    """
    try:
        start = np.array([float(x) for x in text.split(",")])
    except ValueError:
        start = np.empty(0)
    if start.shape != (2,) or not np.isfinite(start).all():
        raise ValueError(f"valley: a start must be two finite numbers, X,Y; got {text}.")
    for problem in problems:
        if problem.dimension != 2:
            raise ValueError("valley: paths are drawn in the plane; leave out --dimension.")
        if not problem.evaluate(start[None])[0][0] <= HUGE:
            raise ValueError(f"valley: {problem.label} is above {HUGE:g} at the start {text}.")
    return start


def _run(
    heats: Sequence[Heat], folder: Path, console: Console
) -> Iterator[tuple[Heat, list[Result]]]:
    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("racing", total=len(heats))
        for heat, results in run_heats(heats, folder):
            bar.update(task, advance=1, description=f"{heat.contender} on {heat.problem.label}")
            yield heat, results


def _draw(
    problems: Sequence[Problem],
    contenders: Sequence[str],
    steps: int,
    start: Array | None,
    out: Path,
    console: Console,
) -> list[Path]:
    """The paper's figures again, one file a function, and the triangle of Fig. 3."""
    folder = out / "docs" / "figures"
    written = [paths.draw_triangle(folder)] if start is None else []
    hidden = not console.is_terminal
    for problem in track(problems, "drawing", console=console, transient=True, disable=hidden):
        first = problem.function.start if start is None else start
        at = np.array(first, dtype=np.float64)
        written.append(paths.draw(problem, contenders, at, steps, folder))
    return written


def _context(steps: int) -> dict[str, Any]:
    return {
        "versions": {
            "hvadam": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "machine": platform.machine(),
        },
        "steps": steps,
        "horizon": LATE * steps,
        "target": TARGET,
        "last": LAST,
        "common_lr": COMMON_LR,
        "grid": [ACROSS, ALONG],
        "sample": SAMPLE,
        "tuning_starts": TUNING,
    }


def _tell(written: Sequence[Path], console: Console) -> None:
    for path in written:
        console.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
