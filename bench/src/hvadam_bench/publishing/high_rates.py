"""The page and the figure of losses by learning rate: `hvadam high-rates`."""

from __future__ import annotations

import json
import math
from pathlib import Path

from matplotlib.figure import Figure

from hvadam_bench.publishing.figures import blank, legend_line, save, tidy
from hvadam_bench.publishing.formatting import NOTHING, number
from hvadam_bench.publishing.pages import render
from hvadam_bench.publishing.palette import line
from hvadam_bench.publishing.tables import Cell, Table
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies.high_rates import AtRate, HighRates, RatesOnTask, best, excess
from hvadam_bench.studies.json_form import to_json

FIGURE = "high-rates.png"
# How far above the best median a panel reaches; what is higher is off the picture.
REACH = 3.0


def write(found: HighRates, results: Path, docs: Path) -> list[Path]:
    """Write the numbers, the page and the figure; returns what was written."""
    numbers, page = results / "high_rates.json", docs / "high-rates.md"
    write_atomically(numbers, f"{json.dumps(to_json(found), indent=1, allow_nan=False)}\n".encode())
    if not found.tasks:
        return [numbers]
    write_atomically(page, render_page(found).encode())
    return [numbers, page, save(draw(found), docs / "figures" / FIGURE)]


def render_page(found: HighRates) -> str:
    """Return the page, as Markdown beside a folder ``figures``."""
    return render(
        "high_rates.md.j2",
        found=found,
        figure=FIGURE,
        seeds=next(iter(found.tasks[0].entrants.values()))[0].n,
        shown=[(task, losses_table(task)) for task in found.tasks],
        summary=excess_table(found),
    )


def losses_table(task: RatesOnTask) -> Table:
    """Return the median losses on a task: a row an entrant, a column a rate, the best bold."""
    rates = [point.lr for point in next(iter(task.entrants.values()))]
    rows = [
        [Cell.of(name), *(_cell(point, point == best(points)) for point in points)]
        for name, points in task.entrants.items()
    ]
    return Table(["", *map(number, rates)], rows, right=range(1, len(rates) + 1))


def excess_table(found: HighRates) -> Table:
    """Return by what factor losses grow at 3, 10 and 30 times everyone's own best rate."""
    factors = (3, 10, 30)
    heads = ["", *(f"{task.title}, {factor} times" for task in found.tasks for factor in factors)]
    rows: list[list[Cell | str]] = []
    for name in found.tasks[0].entrants:
        grown = [excess(task.entrants[name], factor) for task in found.tasks for factor in factors]
        rows.append([Cell.of(name), *map(_factor, grown)])
    return Table(heads, rows, right=range(1, len(heads)))


def draw(found: HighRates) -> Figure:
    """Draw the losses over rates, a panel a task, with bands between the quartiles."""
    figure = blank(3.2, width=7.2)
    panels = figure.subplots(1, len(found.tasks), squeeze=False)[0]
    for axes, task in zip(panels, found.tasks, strict=True):
        lowest = min(best(points).median for points in task.entrants.values())
        for name, points in task.entrants.items():
            shown = [point for point in points if math.isfinite(point.median)]
            style = line(name)
            rates = [point.lr for point in shown]
            axes.plot(rates, [point.median for point in shown], marker=".", **style)
            axes.fill_between(
                rates,
                [point.lower for point in shown],
                [min(point.upper, REACH * lowest) for point in shown],
                color=style["color"],
                alpha=0.12,
                lw=0,
            )
        axes.set(xscale="log", xlabel="learning rate", ylim=(0.95 * lowest, REACH * lowest))
        axes.set_title(task.title, fontsize=9, wrap=True)
        axes.tick_params(labelsize=8)
        tidy(axes, grid=True)
    panels[0].set_ylabel("test loss")
    handles = [legend_line(name) for name in found.tasks[0].entrants]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def _cell(point: AtRate, marked: bool) -> Cell:
    return Cell(number(point.median, 4) if math.isfinite(point.median) else "diverged", mark=marked)


def _factor(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:.3g}" if math.isfinite(value) else "diverged"
