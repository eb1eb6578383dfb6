"""The figures of the findings, drawn from the evidence alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from hvadam_bench.contenders import label
from hvadam_bench.pages.figures import (
    Mark,
    blank,
    draw_interval,
    encode,
    encode_svg,
    legend_line,
    on_ground,
    plain_ticks,
    tidy,
)
from hvadam_bench.pages.palette import BLUE, DARK, GREEN, GREY, LIGHT, RED, ground, line, shade
from hvadam_bench.studies.evidence.describe import Plain

MARK = Mark("HVAdam", "o", RED, 7)
# Its title and axis, and how far a panel reaches at least and at most.
PANELS = {
    "smooth": ("smooth, full batch", "HVAdam's loss / theirs", math.log(2), math.log(100)),
    "minibatch": ("mini-batches", "loss in %, or error in points", 1.0, 20.0),
}
TICKS = (0.01, 0.03, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 100)


def draw_files(evidence: Plain) -> dict[str, bytes]:
    """Return every figure as PNG and SVG on light and dark ground, by the names of the files."""
    suites = [evidence["smooth"], evidence["minibatch"]]
    shown = {
        "suites": (draw_suites, [suite for suite in suites if suite["tasks"]]),
        "noise": (draw_noise, evidence["noise"]["doses"]),
        "profiles": (draw_profiles, [suite for suite in suites if suite["profiles"]]),
    }
    found: dict[str, bytes] = {}
    for chosen, suffix in ((LIGHT, ""), (DARK, "-dark")):
        with on_ground(chosen):
            for name, (draw, content) in shown.items():
                if content:
                    figure = draw(content)
                    found[f"evidence-{name}{suffix}.png"] = encode(figure)
                    found[f"evidence-{name}{suffix}.svg"] = encode_svg(figure, name)
    return found


def draw_suites(suites: Sequence[Plain]) -> Figure:
    """Draw HVAdam versus the best of Adam's family: a row a task, to the left is better."""
    heights = [len(suite["tasks"]) + 1.0 for suite in suites]
    figure = blank(0.34 * sum(heights) + 0.9 * len(suites))
    panels = figure.subplots(len(suites), squeeze=False, height_ratios=heights)[:, 0]
    for axes, suite in zip(panels, suites, strict=True):
        _draw_suite(axes, suite)
    return figure


def draw_noise(doses: Sequence[Plain]) -> Figure:
    """Draw the response over the dose, and over what the diagnostics said of it."""
    figure = blank(5.6)
    panels = figure.subplot_mosaic([["dose", "dose"], ["alignment", "share"]], height_ratios=[4, 3])
    top, left, right = (panels[name] for name in ("dose", "alignment", "share"))
    hues = (RED, BLUE, GREEN)
    tasks = list(dict.fromkeys(dose["task"] for dose in doses))
    for place, task in enumerate(tasks):
        own = [dose for dose in doses if dose["task"] == task and dose["amount"] is not None]
        colour = shade(hues[place]) if place < len(hues) else GREY
        style = {"color": colour, "marker": "osD^v"[place % 5], "ms": 5}
        aside = 1.09 ** (place - (len(tasks) - 1) / 2)  # or ranges would hide each other
        known = [(dose, dose["share"] * aside) for dose in own if dose["share"] is not None]
        for dose, x in known:
            ends = [math.exp(-end) for end in (dose["low"], dose["high"]) if end is not None]
            top.plot([x] * len(ends), ends, color=colour, lw=1, alpha=0.7)
        ys = [math.exp(-dose["amount"]) for dose, _ in known]
        top.plot([x for _, x in known], ys, label=task.replace("_", " "), lw=1.4, **style)
        for axes, diagnostic in ((left, "alignment"), (right, "hidden_share")):
            seen = [dose for dose in own if dose[diagnostic]]
            ys = [math.exp(-dose["amount"]) for dose in seen]
            axes.plot([dose[diagnostic] for dose in seen], ys, lw=0, **style)
    for axes in (top, left, right):
        axes.axhline(1, color=ground().ink, lw=1)
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
        axes.tick_params(labelsize=9)
        tidy(axes, grid=True)
    top.set_xscale("log")
    smallest = min((dose["share"] for dose in doses if dose["share"]), default=1.0)
    powers = range(round(-math.log(smallest, 4)) + 1)
    top.set_xticks([4.0**-k for k in powers], [f"1/{4**k}" if k else "all" for k in powers])
    top.invert_xaxis()
    right.set_xscale("log")
    for axes in (top, left, right):
        axes.minorticks_off()
    top.set_xlabel("batch, as a share of all: less is noisier", fontsize=9)
    left.set_xlabel("alignment after a few hundred steps", fontsize=9)
    right.set_xlabel("share of the step along v, then", fontsize=9)
    for axes in (top, left):
        axes.set_ylabel("HVAdam's loss / Adam's", fontsize=9)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def draw_profiles(suites: Sequence[Plain]) -> Figure:
    """Draw on which share of the tasks each is at the target within a factor of the quickest."""
    figure = blank(3.3)
    panels = figure.subplots(1, len(suites), squeeze=False, sharey=True)[0]
    for axes, suite in zip(panels, suites, strict=True):
        for name, steps in suite["profiles"].items():
            taus, shares = zip(*steps, (4.0, steps[-1][1]), strict=True)
            axes.step(taus, shares, where="post", **line(name))
        axes.set_xlim(1, 4)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("times the evaluations of the quickest", fontsize=9)
        axes.set_title(PANELS[suite["part"]][0], fontsize=10)
        axes.tick_params(labelsize=9)
        tidy(axes, grid=True)
    panels[0].set_ylabel("share of tasks at the target", fontsize=9)
    names = dict.fromkeys(name for suite in suites for name in suite["profiles"])
    handles = [legend_line(name) for name in names]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def _draw_suite(axes: Axes, suite: Plain) -> None:
    smooth, tasks = suite["part"] == "smooth", suite["tasks"]
    title, measured, least, most = PANELS[suite["part"]]

    def shown(task: Plain, x: float | None) -> float:
        """Return a difference as the picture has it: logarithms, percents or points."""
        in_percent = not smooth and task["unit"] == "factor"
        x = math.nan if x is None else x
        return 100 * math.expm1(x) if in_percent else x

    intervals: list[list[float]] = []  # less is better
    for task in tasks:
        found = task["duels"].get(task["family_best"], {})
        ends = [found.get(name) for name in ("amount", "high", "low")]
        intervals.append([shown(task, None if end is None else -end) for end in ends])
    seen = [abs(x) for interval in intervals for x in interval if math.isfinite(x)]
    reach = min(most, 1.12 * max([least, *seen]))
    for row, (task, interval) in enumerate(zip(tasks, intervals, strict=True)):
        margin = shown(task, task["margin"])
        band = Rectangle((-margin, row - 0.4), 2 * margin, 0.8, color=ground().band, lw=0, zorder=0)
        axes.add_patch(band)
        if math.isfinite(interval[0]):
            verdict = task["duels"][task["family_best"]]["verdict"]
            settled = task["solved"] and verdict in ("ahead", "behind")
            draw_interval(axes, interval, row, MARK, settled=settled, reach=reach)
    axes.axvline(0, color=ground().ink, lw=1)
    rivals = [label(task["family_best"]) if task["family_best"] else "nobody" for task in tasks]
    names = [
        f"{task['task'].replace('_', ' ')}\nversus {rival}{'' if task['solved'] else ', unsolved'}"
        for task, rival in zip(tasks, rivals, strict=True)
    ]
    axes.set_yticks(range(len(tasks)), names, fontsize=9)
    axes.set_ylim(len(tasks) - 0.4, -0.6)
    axes.set_xlim(-1.03 * reach, 1.03 * reach)  # or a dot at the end would be cut in half
    if smooth:
        marks = [x for x in TICKS if abs(math.log(x)) <= reach]
        axes.set_xticks([math.log(x) for x in marks], [f"{x:g}" for x in marks])
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=9)
    axes.set_xlabel(f"← better        {measured}        worse →", fontsize=9)
    axes.set_title(title, fontsize=10, loc="left")
    tidy(axes, "left")
