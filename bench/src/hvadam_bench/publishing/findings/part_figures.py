"""The figures of the parts beside the tasks: the ablation, the maps, the generators."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from hvadam_bench.contenders import ABLATION, OURS, label
from hvadam_bench.publishing.figures import (
    Mark,
    blank,
    draw_interval,
    legend_line,
    plain_ticks,
    tidy,
    write_cells,
)
from hvadam_bench.publishing.findings.wording import as_float, title, units_of
from hvadam_bench.publishing.formatting import rate
from hvadam_bench.publishing.palette import GREY, RED, ground, line
from hvadam_bench.studies.evidence.describe import AWAKE
from hvadam_bench.studies.evidence.result import AblationEvidence, OptionMap, TaskEvidence

LENGTHS = (Mark("short runs", "o", RED, 6, hollow=True), Mark("long runs", "s", RED, 6))
# The levels that step along the hidden vector; of the first, the gain is computed but not taken.
STEPPING = (*ABLATION[1:], OURS)
# The scale of the maps' colours ends here: percent from the best.
FAR = 20.0


def draw_ablation(tasks: Sequence[AblationEvidence]) -> Figure:
    """Draw a column a task: the levels beside level 0, then gain and alignment on the way."""
    by_task: dict[str, list[AblationEvidence]] = {}
    for task in tasks:
        by_task.setdefault(task.task, []).append(task)
    columns = [sorted(own, key=lambda task: task.steps) for own in by_task.values()]
    figure = blank(7.2)
    grid = figure.subplots(3, len(columns), squeeze=False, height_ratios=(1.2, 1, 0.8))
    for column, own in zip(grid.T, columns, strict=True):
        _draw_levels(column[0], own)
        _draw_traces(column[1], own, 1, "gain b, long runs")
        column[1].set_yscale("log")
        column[1].axhline(AWAKE, color=ground().ink, lw=0.8, ls=":")
        _draw_traces(column[2], own, 2, "alignment, long runs")
        column[2].set_ylim(0, 1)
        _write_restarts(column[2], own[-1])
        column[2].set_xlabel("steps", fontsize=9)
    for axes in grid[:, 1:].flat:
        axes.set_ylabel("")
    for axes in grid.flat:
        axes.tick_params(labelsize=9)
        tidy(axes)
    handles = [mark.handle() for mark in LENGTHS[: max(map(len, columns))]]
    handles += [
        legend_line(level.name)
        for level in columns[0][-1].levels
        if level.trace and level.name in STEPPING
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False, fontsize=9)
    return figure


def draw_maps(maps: Sequence[OptionMap]) -> Figure:
    """Draw tasks down and options across; a cell says how many percent it is from the task's best.

    One best for all maps of a task, as the default's runs are in each of them.
    """
    tasks = list(dict.fromkeys(one.task for one in maps))
    options = list(dict.fromkeys(one.option for one in maps))
    by_place = {(one.task, one.option): one for one in maps}
    figure = blank(2.5 * len(tasks) + 0.8)
    grid = figure.subplots(len(tasks), len(options), squeeze=False)
    image = None
    for row, task in zip(grid, tasks, strict=True):
        best = _best_of([one for one in maps if one.task == task])
        for place, (axes, option) in enumerate(zip(row, options, strict=True)):
            if (task, option) in by_place:
                image = _draw_map(axes, by_place[task, option], best, first=not place)
            else:
                axes.set_visible(False)
    for axes in grid[:, 1:].flat:
        axes.set_yticklabels([])
    if image is not None:
        bar = figure.colorbar(image, ax=grid, location="bottom", aspect=40, shrink=0.7, pad=0.02)
        bar.set_ticks([0, 1, 2.5, 5, 10, FAR], labels=["0", "1", "2.5", "5", "10", f"{FAR:g}+"])
        bar.set_label("% short of the task's best (×: diverged)", fontsize=9)
        bar.ax.tick_params(labelsize=9)
    return figure


def draw_generators(tasks: Sequence[TaskEvidence]) -> Figure:
    """Draw everyone's distances, a panel a task; less is better."""
    heights = [len(task.contenders) for task in tasks]
    figure = blank(0.27 * sum(heights) + 0.8 * len(tasks))
    grid = figure.subplots(len(tasks), 1, squeeze=False, height_ratios=heights)
    for axes, task in zip(grid.flat, tasks, strict=True):
        _draw_distances(axes, task)
    return figure


def _draw_levels(axes: Axes, tasks: Sequence[AblationEvidence]) -> None:
    names = [level.name for level in tasks[0].levels][1:]
    for place, (task, mark) in enumerate(zip(tasks, LENGTHS, strict=False)):
        for row, level in enumerate(task.levels[1:]):
            found = level.against_first
            assert found is not None, "only the first level is beside nothing"
            ends = [as_float(x) for x in found.percent]
            y = row + 0.26 * (place - (len(tasks) - 1) / 2)
            if all(map(math.isfinite, ends)):
                draw_interval(axes, ends, y, mark, settled=found.standing in ("ahead", "behind"))
            else:
                axes.text(0, y, "diverged", fontsize=9, va="center", color=GREY)
    axes.axvline(0, color=ground().ink, lw=1)
    axes.set_yticks(range(len(names)), [label(name) for name in names], fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("% better than HVAdam⁰ (grey: tie)", fontsize=9)
    axes.set_title(title(tasks[0]), fontsize=10)


def _draw_traces(axes: Axes, tasks: Sequence[AblationEvidence], key: int, about: str) -> None:
    for level in tasks[-1].levels:
        points = [row for row in level.trace if row[key]]  # a gain of 0 is off the log scale
        if points and level.name in STEPPING:
            steps, values = [row[0] for row in points], [as_float(row[key]) for row in points]
            axes.plot(steps, values, marker=".", **line(level.name))
    if len(tasks) > 1:
        axes.axvline(tasks[0].steps, color=GREY, lw=1, ls="--")
    axes.set_ylabel(about, fontsize=9)


def _write_restarts(axes: Axes, task: AblationEvidence) -> None:
    ours = next((level for level in task.levels if level.name == OURS), None)
    if ours and ours.hidden and ours.hidden.restarts is not None:
        text = f"restarts of HVAdam: {ours.hidden.restarts:g}"
        axes.text(0.97, 0.9, text, ha="right", fontsize=9, transform=axes.transAxes)


def _best_of(maps: Sequence[OptionMap]) -> float:
    pick = min if maps[0].goal == "min" else max
    return pick(x for one in maps for row in one.cells for x in row if x is not None)


def _draw_map(axes: Axes, one: OptionMap, best: float, *, first: bool) -> AxesImage:
    cells = np.array([[as_float(x) for x in row] for row in one.cells])
    short = 100 * np.abs(cells - best).T / abs(best)  # rates down, values of the option across
    # The root, for what is near the best matters most.
    image = axes.imshow(short, cmap="cividis_r", norm=PowerNorm(0.5, 0, FAR), aspect="auto")
    write_cells(axes, short, _write_short, lambda x: x > 0.2 * FAR, fontsize=7.5)
    axes.set_xticks(range(len(one.values)), [f"{value:g}" for value in one.values], fontsize=8)
    if one.default in one.values:
        axes.get_xticklabels()[one.values.index(one.default)].set_fontweight("bold")
    axes.set_yticks(range(len(one.rates)), [rate(lr) for lr in one.rates], fontsize=8)
    axes.set_xlabel(one.option, fontsize=9)
    if first:
        axes.set_ylabel("lr", fontsize=9)
        axes.set_title(title(one), fontsize=10, loc="left")
    return image


def _write_short(x: float) -> str:
    return "×" if math.isnan(x) else f"{x:.1f}" if x < 9.95 else f"{x:.0f}"


def _draw_distances(axes: Axes, task: TaskEvidence) -> None:
    names = list(task.contenders)
    seen = [x for one in task.contenders.values() if not one.lost for x in one.values]
    finite = [x for x in seen if x is not None]
    for row, (name, one) in enumerate(task.contenders.items()):
        colour = line(name)["color"]
        ends = [as_float(one.low), as_float(one.high)]
        if one.lost:
            across = axes.get_yaxis_transform()  # in shares of the panel
            axes.text(0.98, row, one.lost, transform=across, fontsize=9, va="center", ha="right")
            continue
        if all(map(math.isfinite, ends)):
            axes.plot(ends, [row, row], color=colour, lw=1.8)
        axes.plot(as_float(one.median), row, "o", color=colour, ms=7 if name == OURS else 5)
    axes.set_yticks(range(len(names)), [label(name) for name in names], fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    if finite and max(finite) > 3 * min(finite):
        axes.set_xscale("log")
        plain_ticks(axes.xaxis)
    better = "less" if task.goal == "min" else "more"
    axes.set_title(f"{title(task)}: {units_of(task).measure}, {better} is better", fontsize=10)
    axes.tick_params(axis="x", labelsize=9)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color=ground().band)
    tidy(axes, "left")
