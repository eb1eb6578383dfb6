"""The figures of the findings, drawn from the evidence alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hvadam_bench.analysis.statistics import median
from hvadam_bench.contenders import OURS, REFERENCE, label
from hvadam_bench.publishing.figures import (
    Mark,
    blank,
    draw_interval,
    encode,
    legend_line,
    on_ground,
    plain_numbers,
    tidy,
)
from hvadam_bench.publishing.findings import part_figures
from hvadam_bench.publishing.findings.tables import MOST, off_rates
from hvadam_bench.publishing.findings.wording import as_float, title, units_of
from hvadam_bench.publishing.palette import BLUE, GREEN, GREY, RED, Ground, ground, line
from hvadam_bench.studies.evidence.describe import STILL, USUAL
from hvadam_bench.studies.evidence.result import Duel, Evidence, TaskEvidence

# HVAdam and its variants in the first figure.
MARKS = {
    OURS: Mark("HVAdam", "o", RED, 7),
    USUAL: Mark("usual: gamma 0, eps 1e-16", "s", BLUE, 5),
    STILL: Mark("no hidden step", "D", GREEN, 5),
}
# Tasks of different kinds first; as many as there is room for.
CURVES = ("cifar10_vgg11", "shakespeare_lstm", "wikitext2_transformer", "cifar10_vit_b16")


def draw_all(evidence: Evidence, chosen: Ground) -> dict[str, bytes]:
    """Return all that there is something for, on light or dark ground, as files by their names."""
    found: dict[str, Figure] = {}
    with on_ground(chosen):
        if any(REFERENCE in task.duels for task in evidence.tasks):
            found["against-adam"] = draw_forest(evidence.tasks)
        if evidence.tasks:
            found["curves"] = draw_curves(evidence.tasks)
            found["rates"] = draw_rates(evidence.tasks)
        if evidence.ablation:
            found["ablation"] = part_figures.draw_ablation(evidence.ablation)
        if evidence.maps:
            found["maps"] = part_figures.draw_maps(evidence.maps)
        if evidence.generative:
            found["generators"] = part_figures.draw_generators(evidence.generative)
        return {f"evidence-{name}.png": encode(figure) for name, figure in found.items()}


def draw_forest(tasks: Sequence[TaskEvidence]) -> Figure:
    """Draw HVAdam and its variants beside Adam, a row for each task; ties are grey."""
    shown = [task for task in tasks if REFERENCE in task.duels]
    figure = blank(0.55 * len(shown) + 1.5)
    axes = figure.subplots()
    reach = _reach(shown)
    for row, task in enumerate(shown):
        if row % 2:
            axes.axhspan(row - 0.5, row + 0.5, color=ground().band, lw=0, zorder=0)
        found = _marked(task)
        for place, (name, duel) in enumerate(found.items()):
            y = row + 0.27 * (place - (len(found) - 1) / 2)
            _draw_duel(axes, duel, y, MARKS[name], reach)
    axes.axvline(0, color=ground().ink, lw=1)
    axes.set_yticks(range(len(shown)), [title(task) for task in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlim(-reach, reach)
    n = f"n = {' or '.join(map(str, sorted({task.seeds for task in shown})))} seeds"
    axes.set_xlabel(f"← worse        better →\ndifference to Adam, % of Adam's median, {n}")
    axes.tick_params(axis="y", length=0)
    tidy(axes, "left")
    handles = [mark.handle() for mark in MARKS.values()]
    handles.append(Line2D([], [], color=GREY, marker="o", ls="-", label="grey: tie or unsettled"))
    figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False)
    return figure


def draw_curves(tasks: Sequence[TaskEvidence]) -> Figure:
    """Draw validation values over steps on a few tasks."""
    by_task = {task.task: task for task in tasks}
    order = [*(name for name in CURVES if name in by_task), *by_task]
    shown = [by_task[name] for name in list(dict.fromkeys(order))[: len(CURVES)]]
    rows = math.ceil(len(shown) / 2)
    figure = blank(2.7 * rows + 0.6)
    grid = figure.subplots(rows, 2, squeeze=False)
    names: dict[str, None] = {}
    for axes, task in zip(grid.flat, shown, strict=False):
        _draw_curves(axes, task)
        names.update(dict.fromkeys(task.curves))
    for axes in list(grid.flat)[len(shown) :]:
        axes.set_visible(False)
    handles = [legend_line(name) for name in names]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def draw_rates(tasks: Sequence[TaskEvidence]) -> Figure:
    """Draw what a rate three times off costs: a dot a task, a tick for their median."""
    found = off_rates(tasks)
    figure = blank(0.36 * len(found) + 1.3)
    sides = figure.subplots(1, 2, sharey=True)
    for axes, side in zip(sides, ("a third of", "three times"), strict=True):
        for row, (name, costs) in enumerate(found.items()):
            own = costs.third if axes is sides[0] else costs.triple
            colour = line(name)["color"]
            axes.plot(np.minimum(own, MOST), [row] * len(own), "o", ms=4, alpha=0.6, color=colour)
            axes.plot(min(median(own), MOST), row, "|", ms=17, mew=2.6, color=colour)
        axes.set_xscale("symlog", linthresh=1, linscale=0.6)
        axes.set_xlim(-0.08, 1.15 * MOST)
        axes.set_xticks([0, 1, 3, 10, 30, MOST], ["0", "1", "3", "10", "30", f"{MOST:g}+"])
        axes.minorticks_off()
        axes.set_xlabel(f"% lost at {side} the best rate", fontsize=9)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", color=ground().band)
        axes.set_axisbelow(True)
        tidy(axes, "left")
    sides[0].set_yticks(range(len(found)), [label(name) for name in found])
    sides[0].set_ylim(len(found) - 0.5, -0.5)
    return figure


def _marked(task: TaskEvidence) -> dict[str, Duel]:
    """Return HVAdam and its variants beside Adam."""
    found = {name: task.contenders[name] for name in MARKS if name in task.contenders}
    return {name: one.against_adam for name, one in found.items() if one.against_adam}


def _draw_duel(axes: Axes, found: Duel, y: float, mark: Mark, reach: float) -> None:
    """Draw a median and its interval, or that there are none."""
    ends = [as_float(x) for x in found.percent]
    if math.isfinite(ends[0]):
        settled = found.standing in ("ahead", "behind")
        draw_interval(axes, ends, y, mark, settled=settled, reach=reach)
        return
    x, side = (0.97 * reach, "right") if ends[0] > 0 else (-0.97 * reach, "left")
    axes.text(x, y, "diverged", ha=side, va="center", fontsize=9)


def _reach(tasks: Sequence[TaskEvidence]) -> float:
    """Return half the width: enough for all medians of HVAdam and most of what else there is."""
    ends: list[float] = []
    needed = 0.1
    for task in tasks:
        for name, found in _marked(task).items():
            values = [abs(x) for x in map(as_float, found.percent)]
            ends += [x for x in values if math.isfinite(x)]
            if name == OURS and math.isfinite(values[0]):
                needed = max(needed, values[0])
    ends.sort()
    most = ends[int(0.95 * (len(ends) - 1))] if ends else 1.0
    return 1.12 * max(most, needed)


def _draw_curves(axes: Axes, task: TaskEvidence) -> None:
    later: list[float] = []
    for name, points in task.curves.items():
        rows = [[x if math.isfinite(x) else math.nan for x in map(as_float, p)] for p in points]
        steps, middle, low, high = zip(*rows, strict=True)
        axes.plot(steps, middle, **line(name))
        if name in (OURS, REFERENCE):
            axes.fill_between(steps, low, high, color=line(name)["color"], alpha=0.15, lw=0)
        later += [x for x in middle[max(1, len(middle) // 4) :] if not math.isnan(x)]
    if later:  # what happens in the first steps would flatten the rest
        edge = 0.06 * (max(later) - min(later)) or 0.1
        axes.set_ylim(min(later) - edge, max(later) + edge)
    if task.goal == "min" and later and min(later) > 0 and max(later) > 3 * min(later):
        axes.set_yscale("log")
        plain_numbers(axes.yaxis)
    axes.set_title(title(task), fontsize=10)
    axes.set_ylabel(f"validation {units_of(task).name}", fontsize=9)
    axes.set_xlabel("steps", fontsize=9)
    axes.tick_params(labelsize=9)
    tidy(axes)
