"""The page and the figure of losses by learning rate: `hvadam high-rates`."""

from __future__ import annotations

import json
import math
import textwrap
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
FACTORS = (3, 10)
MARKERS = "osD^v"


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
    )


def losses_table(task: RatesOnTask) -> Table:
    """Return the median losses on a task: a row an entrant, a column a rate, the best bold.

    Then by what factor they grow at so many times the rate that was best for each.
    """
    rates = [point.lr for point in next(iter(task.entrants.values()))]
    rows = [
        [
            Cell.of(name),
            *(_cell(point, point == best(points)) for point in points),
            *(_factor(excess(points, factor)) for factor in FACTORS),
        ]
        for name, points in task.entrants.items()
    ]
    heads = ["", *map(number, rates), *(f"{factor} × best" for factor in FACTORS)]
    return Table(heads, rows, right=range(1, len(heads)))


def draw(found: HighRates) -> Figure:
    """Draw the losses over rates, a panel a task, with bands between the quartiles."""
    figure = blank(3.4, width=7.2)
    panels = figure.subplots(1, len(found.tasks), squeeze=False)[0]
    for axes, task in zip(panels, found.tasks, strict=True):
        everyone = [point for points in task.entrants.values() for point in points]
        ends = [point.median for point in everyone if math.isfinite(point.median)]
        low, high = 0.97 * min(ends), min(REACH * min(ends), 1.03 * max(ends))
        for place, (name, points) in enumerate(task.entrants.items()):
            shown = [point for point in points if math.isfinite(point.median)]
            style = line(name)
            rates = [point.lr for point in shown]
            medians = [point.median for point in shown]
            axes.plot(rates, medians, marker=MARKERS[place], ms=4, **style)
            lower, upper = ([getattr(p, end) for p in shown] for end in ("lower", "upper"))
            reach = [min(one, 10 * high) for one in upper]
            axes.fill_between(rates, lower, reach, color=style["color"], alpha=0.1, lw=0)
        axes.set(xscale="log", xlabel="learning rate", ylim=(low, high))
        axes.set_title(textwrap.fill(task.title, 26), fontsize=8)
        axes.tick_params(labelsize=8)
        tidy(axes, grid=True)
    panels[0].set_ylabel("test loss")
    handles = [legend_line(name) for name in found.tasks[0].entrants]
    for place, handle in enumerate(handles):
        handle.set_marker(MARKERS[place])
        handle.set_markersize(4)
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def _cell(point: AtRate, marked: bool) -> Cell:
    return Cell(number(point.median, 4) if math.isfinite(point.median) else "diverged", mark=marked)


def _factor(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:.3g}" if math.isfinite(value) else "diverged"
