"""Figures of many small panels: the ablation, the maps, the generators."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from hvadam.bench.findings.looks import GREY, WIDTH, Mark, line_of
from hvadam.bench.findings.measures import AWAKE
from hvadam.bench.findings.words import lost, rate, title, units_of
from hvadam.bench.report.looks import OURS, look

Content = Mapping[str, Any]
LENGTHS = (Mark("short", "o", "#56B4E9", 6), Mark("long", "s", "#0072B2", 6))
# The scale of the maps' colours ends here: percent from the best.
FAR = 20.0


def draw_ablation(boards: Sequence[Content]) -> Figure:
    """A column a task: the levels beside level 0, then gain and alignment over the longest run."""
    by_task: dict[str, list[Content]] = {}
    for board in boards:
        by_task.setdefault(board["task"], []).append(board)
    columns = [sorted(own, key=lambda board: board["steps"]) for own in by_task.values()]
    figure = Figure(figsize=(WIDTH, 7.2), layout="constrained")
    grid = figure.subplots(3, len(columns), squeeze=False, height_ratios=(1.2, 1, 0.8))
    for column, own in zip(grid.T, columns, strict=True):
        _levels(column[0], own)
        _traces(column[1], own, 1, "gain b (log)")
        column[1].set_yscale("log")
        column[1].axhline(AWAKE, color="black", lw=0.8, ls=":")
        _traces(column[2], own, 2, "alignment")
        column[2].set_ylim(0, 1)
        _restarts(column[2], own[-1])
        column[2].set_xlabel("steps", fontsize=9)
    for axes in grid[:, 1:].flat:
        axes.set_ylabel("")
    for axes in grid.flat:
        axes.tick_params(labelsize=9)
        axes.spines[["right", "top"]].set_visible(False)
    longest = columns[0][-1]
    handles = [mark.handle() for mark in LENGTHS[: max(map(len, columns))]]
    handles += [
        Line2D([], [], label=look(level["name"]).label, **line_of(level["name"]))
        for level in longest["levels"]
        if level["trace"] and level["hidden"]["gain"]
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False, fontsize=9)
    return figure


def draw_maps(maps: Sequence[Content]) -> Figure:
    """Rows are tasks, columns options; a cell says how many percent it is short of the best."""
    tasks = list(dict.fromkeys(one["task"] for one in maps))
    options = list(dict.fromkeys(one["option"] for one in maps))
    by_place = {(one["task"], one["option"]): one for one in maps}
    figure = Figure(figsize=(WIDTH, 2.5 * len(tasks) + 0.8), layout="constrained")
    grid = figure.subplots(len(tasks), len(options), squeeze=False)
    image = None
    for row, task in zip(grid, tasks, strict=True):
        for axes, option in zip(row, options, strict=True):
            if (task, option) in by_place:
                image = _map(axes, by_place[task, option])
            else:
                axes.set_visible(False)
    for axes in grid[:, 1:].flat:
        axes.set_yticklabels([])
    if image is not None:
        bar = figure.colorbar(image, ax=grid, location="bottom", aspect=40, shrink=0.7, pad=0.02)
        bar.set_ticks([0, 1, 2.5, 5, 10, FAR], labels=["0", "1", "2.5", "5", "10", f"{FAR:g}+"])
        bar.set_label("% short of the best of the map (×: diverged)", fontsize=9)
        bar.ax.tick_params(labelsize=9)
    return figure


def draw_generators(boards: Sequence[Content]) -> Figure:
    """Distances of each entry, a panel a task; less is better."""
    heights = [len(board["entries"]) for board in boards]
    figure = Figure(figsize=(WIDTH, 0.27 * sum(heights) + 0.8 * len(boards)), layout="constrained")
    grid = figure.subplots(len(boards), 1, squeeze=False, height_ratios=heights)
    for axes, board in zip(grid.flat, boards, strict=True):
        _distances(axes, board)
    return figure


def _levels(axes: Axes, boards: Sequence[Content]) -> None:
    names = [level["name"] for level in boards[0]["levels"]][1:]
    for place, (board, mark) in enumerate(zip(boards, LENGTHS, strict=False)):
        for row, level in enumerate(board["levels"][1:]):
            found = level["against_first"]
            ends = [math.nan if x is None else float(x) for x in found["percent"]]
            colour = mark.colour if found["standing"] in ("ahead", "behind") else GREY
            y = row + 0.26 * (place - (len(boards) - 1) / 2)
            if not all(map(math.isfinite, ends)):
                axes.text(0, y, "diverged", fontsize=9, va="center", color=GREY)
                continue
            axes.plot(ends[1:], [y, y], color=colour, lw=1.8)
            axes.plot(ends[0], y, mark.shape, color=colour, ms=mark.size)
    axes.axvline(0, color="black", lw=1)
    axes.set_yticks(range(len(names)), [look(name).label for name in names], fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("% better than HVAdam⁰ (grey: tie)", fontsize=9)
    axes.set_title(title(boards[0]), fontsize=10)


def _traces(axes: Axes, boards: Sequence[Content], key: int, label: str) -> None:
    longest = boards[-1]
    for level in longest["levels"]:
        points = [row for row in level["trace"] if row[key]]  # a gain of 0 is off the log scale
        if points and level["hidden"]["gain"]:
            steps, values = [row[0] for row in points], [row[key] for row in points]
            axes.plot(steps, values, marker=".", **line_of(level["name"]))
    if len(boards) > 1:
        axes.axvline(boards[0]["steps"], color=GREY, lw=1, ls="--")
    axes.set_ylabel(label, fontsize=9)


def _restarts(axes: Axes, board: Content) -> None:
    ours = next((level for level in board["levels"] if level["name"] == OURS), None)
    if ours and ours["hidden"] and ours["hidden"]["restarts"] is not None:
        text = f"restarts of HVAdam: {ours['hidden']['restarts']:g}"
        axes.text(0.97, 0.9, text, ha="right", fontsize=9, transform=axes.transAxes)


def _map(axes: Axes, one: Content) -> Any:
    best = (min if one["goal"] == "min" else max)(
        x for row in one["cells"] for x in row if x is not None
    )
    short = np.array(
        [
            [np.nan if x is None else 100 * abs(x - best) / abs(best) for x in row]
            for row in one["cells"]
        ]
    ).T  # rates down, values of the option across
    # The root, for what is near the best matters most.
    image = axes.imshow(short, cmap="cividis_r", norm=PowerNorm(0.5, 0, FAR), aspect="auto")
    for (i, j), value in np.ndenumerate(short):
        text = "×" if np.isnan(value) else f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
        dark = not np.isnan(value) and value > 0.2 * FAR
        style = {"ha": "center", "va": "center", "fontsize": 7.5}
        axes.text(j, i, text, color="white" if dark else "black", **style)
    default = one["values"].index(one["default"]) if one["default"] in one["values"] else None
    labels = [f"{value:g}" for value in one["values"]]
    axes.set_xticks(range(len(labels)), labels, fontsize=8)
    if default is not None:
        axes.get_xticklabels()[default].set_fontweight("bold")
    axes.set_yticks(range(len(one["rates"])), [rate(lr) for lr in one["rates"]], fontsize=8)
    axes.set_xlabel(one["option"], fontsize=9)
    if axes.get_subplotspec().colspan.start == 0:  # pyright: ignore[reportOptionalMemberAccess]
        axes.set_ylabel("lr", fontsize=9)
        axes.set_title(title(one), fontsize=10, loc="left")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image


def _distances(axes: Axes, board: Content) -> None:
    names = list(board["entries"])
    entries = [entry for entry in board["entries"].values() if not lost(entry)]
    finite = [x for entry in entries for x in entry["values"] if x is not None]
    for row, name in enumerate(names):
        entry, line = board["entries"][name], line_of(name)
        ends = [math.nan if entry[key] is None else float(entry[key]) for key in ("low", "high")]
        if why := lost(entry):
            beside = axes.get_yaxis_transform()  # across, in shares of the panel
            axes.text(0.98, row, why, transform=beside, fontsize=9, va="center", ha="right")
        elif all(map(math.isfinite, ends)):
            axes.plot(ends, [row, row], color=line["color"], lw=1.8)
        if entry["median"] is not None and not lost(entry):
            size = 7 if name == OURS else 5
            axes.plot(entry["median"], row, "o", color=line["color"], ms=size)
    axes.set_yticks(range(len(names)), [look(name).label for name in names], fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    if finite and max(finite) > 3 * min(finite):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    better = "less" if board["goal"] == "min" else "more"
    axes.set_title(f"{title(board)}: {units_of(board).measure}, {better} is better", fontsize=10)
    axes.tick_params(axis="x", labelsize=9)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color="#EEEEEE")
    axes.spines[["right", "top", "left"]].set_visible(False)
