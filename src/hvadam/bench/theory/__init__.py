"""The paper's three theorems, measured: the numbers, the figures and the page that shows them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from hvadam._version import __version__
from hvadam.bench.theory import figures, hidden_vector, nonconvex, page, regret

DIGITS = 6  # significant ones, of the numbers that are kept


def study(rounds: int, out: Path, console: Console) -> None:
    """Measure everything; write numbers, figures and page below ``out``.

    Args:
        rounds: Of the online problems and of the non-convex ones.
        out: A directory that holds results/ and docs/figures/.
        console: Where progress and the summary go.
    """
    content = measure(rounds, console)
    results, text = out / "results" / "theory.json", out / "docs" / "theory.md"
    results.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    text.write_text(page.render(content), encoding="utf-8")
    written = [results, text]
    for name, figure in figures.draw(content).items():
        written.append(out / "docs" / "figures" / f"theory-{name}.png")
        figures.save(figure, written[-1])
    for line in page.summary(content):
        console.print(line, markup=False, highlight=False)
    for path in written:
        console.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)


def measure(rounds: int, console: Console) -> dict[str, Any]:
    """Every number, as JSON may hold it."""
    with _progress(console) as bar, np.errstate(over="ignore", invalid="ignore"):
        b = bar.add_task("B: the hidden vector", total=len(hidden_vector.CASES))
        c = bar.add_task("C: regret", total=rounds)
        d = bar.add_task("D: non-convex problems", total=rounds)
        content = {
            "versions": {"hvadam": __version__, "numpy": np.__version__},
            "hidden_vector": hidden_vector.study(lambda: bar.advance(b)),
            "regret": regret.study(rounds, advance=lambda done: bar.advance(c, done)),
            "nonconvex": nonconvex.study(rounds, advance=lambda done: bar.advance(d, done)),
        }
    return _rounded(content)


@contextmanager
def _progress(console: Console) -> Iterator[Progress]:
    columns = (
        TextColumn("{task.description:<22}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        yield bar


def _rounded(value: Any) -> Any:
    """To a few digits, which keeps the file small; what is not finite becomes None."""
    if isinstance(value, dict):
        return {key: _rounded(x) for key, x in value.items()}
    if isinstance(value, list):
        return [_rounded(x) for x in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value
