"""The figures of the page, drawn from ``results/evidence.json`` alone.

They are 6.4 inches wide with type of at least 9 points, so that a phone shows them legibly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from hvadam.bench.findings import panels
from hvadam.bench.findings.looks import GREY, WIDTH, Mark, line_of
from hvadam.bench.findings.measures import STILL, USUAL
from hvadam.bench.findings.sections import decades_by_entry
from hvadam.bench.findings.words import title, units_of
from hvadam.bench.report.looks import OURS, REFERENCE, look
from hvadam.bench.valley.style import save

Content = Mapping[str, Any]
PREFIX = "evidence-"
# HVAdam and its variants in the first figure.
MARKS = {
    OURS: Mark("HVAdam", "o", "#D55E00", 7),
    USUAL: Mark("usual: gamma 0, eps 1e-16", "s", "#0072B2", 5),
    STILL: Mark("no hidden step", "D", "#009E73", 5),
}
# Tasks of different kinds first; as many as there is room for.
CURVES = ("cifar10_vgg11", "shakespeare_lstm", "wikitext2_transformer", "cifar10_vit_b16")


def draw_all(content: Content, folder: Path) -> list[Path]:
    """All that the content has something for; figures of an earlier one are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Figure] = {}
    if any(REFERENCE in board["duels"] for board in content["tasks"]):
        found["against-adam"] = draw_forest(content["tasks"])
    if content["tasks"]:
        found["curves"] = draw_curves(content["tasks"])
        found["rates"] = draw_rates(content["tasks"])
    if content["ablation"]:
        found["ablation"] = panels.draw_ablation(content["ablation"])
    if content["maps"]:
        found["maps"] = panels.draw_maps(content["maps"])
    if content["generative"]:
        found["generators"] = panels.draw_generators(content["generative"])
    written = [save(figure, folder / f"{PREFIX}{name}.png") for name, figure in found.items()]
    for stale in set(folder.glob(f"{PREFIX}*.png")) - set(written):
        stale.unlink()
    return written


def name_of(path: Path) -> str:
    """What claims call a figure.

    Example:
        >>> name_of(Path("docs/figures/evidence-against-adam.png"))
        'against Adam'
    """
    return path.stem.removeprefix(PREFIX).replace("-", " ").replace("adam", "Adam")


def draw_forest(boards: Sequence[Content]) -> Figure:
    """HVAdam and its variants beside Adam, a row for each task; ties are grey."""
    shown = [board for board in boards if REFERENCE in board["duels"]]
    figure = Figure(figsize=(WIDTH, 0.55 * len(shown) + 1.5), layout="constrained")
    axes = figure.subplots()
    reach = _reach(shown)
    for row, board in enumerate(shown):
        if row % 2:
            axes.axhspan(row - 0.5, row + 0.5, color="#E8E8E8", lw=0, zorder=0)
        present = [name for name in MARKS if name in board["entries"]]
        for place, name in enumerate(present):
            found = board["entries"][name]["against_adam"]
            y = row + 0.27 * (place - (len(present) - 1) / 2)
            _interval(axes, found, y, MARKS[name], reach)
    axes.axvline(0, color="black", lw=1)
    axes.set_yticks(range(len(shown)), [title(board) for board in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlim(-reach, reach)
    seeds = sorted({board["seeds"] for board in shown})
    n = f"n = {' or '.join(map(str, seeds))} seeds"
    axes.set_xlabel(f"← worse        better →\ndifference to Adam, % of Adam's median, {n}")
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "right", "top"]].set_visible(False)
    handles = [mark.handle() for mark in MARKS.values()]
    handles.append(Line2D([], [], color=GREY, marker="o", ls="-", label="grey: tie or unsettled"))
    figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False)
    return figure


def draw_curves(boards: Sequence[Content]) -> Figure:
    """Validation values over steps on a few tasks."""
    by_task = {board["task"]: board for board in boards}
    order = [*(task for task in CURVES if task in by_task), *by_task]
    shown = [by_task[task] for task in list(dict.fromkeys(order))[: len(CURVES)]]
    rows = math.ceil(len(shown) / 2)
    figure = Figure(figsize=(WIDTH, 2.7 * rows + 0.6), layout="constrained")
    grid = figure.subplots(rows, 2, squeeze=False)
    names: dict[str, None] = {}
    for axes, board in zip(grid.flat, shown, strict=False):
        _curves(axes, board)
        names.update(dict.fromkeys(board["curves"]))
    for axes in list(grid.flat)[len(shown) :]:
        axes.set_visible(False)
    handles = [Line2D([], [], label=look(name).label, **line_of(name)) for name in names]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def draw_rates(boards: Sequence[Content]) -> Figure:
    """How many decades of learning rates are within 1% of the best: a dot a task, the median."""
    decades = decades_by_entry(boards)
    names = sorted(decades, key=lambda name: median(decades[name].values()))
    figure = Figure(figsize=(WIDTH, 0.36 * len(names) + 1.1), layout="constrained")
    axes = figure.subplots()
    for row, name in enumerate(names):
        own = sorted(decades[name].values())
        colour = line_of(name)["color"]
        axes.barh(row, median(own), color=colour, alpha=0.3, height=0.7)
        # Many tasks share a value: those stand above each other.
        for value in set(own):
            count = own.count(value)
            ys = [row + 0.09 * (i - (count - 1) / 2) for i in range(count)]
            axes.plot([value] * count, ys, "o", ms=3.2, color=colour)
    axes.set_yticks(range(len(names)), [look(name).label for name in names])
    axes.set_xlabel("decades of learning rates within 1% of the best\n(bar: median; dot: a task)")
    axes.spines[["right", "top"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure


def _interval(axes: Axes, found: Content, y: float, mark: Mark, reach: float) -> None:
    """A median and its interval; what lies outside the picture ends in an arrow at its edge."""
    settled = found["standing"] in ("ahead", "behind")
    colour = mark.colour if settled else GREY
    middle, low, high = (math.nan if x is None else float(x) for x in found["percent"])
    if not math.isfinite(middle):
        side = 0.97 if middle > 0 else -0.97
        axes.text(
            side * reach, y, "diverged", ha="right" if side > 0 else "left", va="center", fontsize=9
        )
        return
    inside = [max(-reach, min(reach, x)) for x in (low, high)]
    axes.plot(inside, [y, y], color=colour, lw=1.8, solid_capstyle="butt")
    for x, sign in ((low, "<"), (high, ">")):
        if abs(x) > reach:
            axes.plot(math.copysign(0.985 * reach, x), y, sign, color=colour, ms=5)
    if abs(middle) <= reach:
        axes.plot(middle, y, mark.shape, color=colour, ms=mark.size)


def _reach(boards: Sequence[Content]) -> float:
    """Half the width: enough for all medians of HVAdam and most of what else there is."""
    ends: list[float] = []
    needed = 0.1
    for board in boards:
        for name in MARKS:
            entry = board["entries"].get(name)
            if entry is None or not entry["against_adam"]:
                continue
            values = [float(x) for x in entry["against_adam"]["percent"] if x is not None]
            finite = [abs(x) for x in values if math.isfinite(x)]
            ends += finite
            if name == OURS and values and math.isfinite(values[0]):
                needed = max(needed, abs(values[0]))
    ends.sort()
    most = ends[int(0.95 * (len(ends) - 1))] if ends else 1.0
    return 1.12 * max(most, needed)


def _curves(axes: Axes, board: Content) -> None:
    later: list[float] = []
    for name, points in board["curves"].items():
        rows = [[math.nan if x in (None, "inf", "-inf") else x for x in point] for point in points]
        steps, middle, low, high = zip(*rows, strict=True)
        axes.plot(steps, middle, **line_of(name))
        if name in (OURS, REFERENCE):
            axes.fill_between(steps, low, high, color=line_of(name)["color"], alpha=0.15, lw=0)
        later += [x for x in middle[max(1, len(middle) // 4) :] if not math.isnan(x)]
    if later:  # what happens in the first steps would flatten the rest
        edge = 0.06 * (max(later) - min(later)) or 0.1
        axes.set_ylim(min(later) - edge, max(later) + edge)
    if board["goal"] == "min" and later and min(later) > 0 and max(later) > 3 * min(later):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_title(title(board), fontsize=10)
    axes.set_ylabel(f"validation {units_of(board).name}", fontsize=9)
    axes.set_xlabel("steps", fontsize=9)
    axes.tick_params(labelsize=9)
    axes.spines[["right", "top"]].set_visible(False)
