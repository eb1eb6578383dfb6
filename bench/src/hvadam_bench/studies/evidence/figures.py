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
TITLES = {"smooth": "smooth, full batch", "minibatch": "mini-batches"}
AXES = {"smooth": "HVAdam's loss / theirs", "minibatch": "loss in %, or error in points"}
# A picture reaches at least so far, and at most: factors, and percents or points.
REACH = {"smooth": (math.log(2), math.log(100)), "minibatch": (1.0, 20.0)}
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
        axes.set_title(TITLES[suite["part"]], fontsize=10)
        axes.tick_params(labelsize=9)
        tidy(axes, grid=True)
    panels[0].set_ylabel("share of tasks at the target", fontsize=9)
    names = dict.fromkeys(name for suite in suites for name in suite["profiles"])
    handles = [legend_line(name) for name in names]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def _draw_suite(axes: Axes, suite: Plain) -> None:
    smooth, tasks = suite["part"] == "smooth", suite["tasks"]
    duels = [task["duels"].get(task["family_best"]) for task in tasks]
    intervals = [
        [] if found is None else _scaled(task, found, smooth)
        for task, found in zip(tasks, duels, strict=True)
    ]
    least, most = REACH[suite["part"]]
    ends = [abs(x) for interval in intervals for x in interval if math.isfinite(x)]
    reach = min(most, 1.12 * max([least, *ends]))
    for row, (task, found, interval) in enumerate(zip(tasks, duels, intervals, strict=True)):
        margin = task["margin"]
        if not smooth and task["unit"] == "factor":
            margin = 100 * math.expm1(margin)
        band = Rectangle((-margin, row - 0.4), 2 * margin, 0.8, color=ground().band, lw=0, zorder=0)
        axes.add_patch(band)
        if interval and math.isfinite(interval[0]):
            settled = task["solved"] and found["verdict"] in ("ahead", "behind")
            draw_interval(axes, interval, row, MARK, settled=settled, reach=reach)
    axes.axvline(0, color=ground().ink, lw=1)
    axes.set_yticks(range(len(tasks)), [_row_label(task) for task in tasks], fontsize=9)
    axes.set_ylim(len(tasks) - 0.4, -0.6)
    axes.set_xlim(-1.03 * reach, 1.03 * reach)  # or a dot at the end would be cut in half
    if smooth:
        marks = [x for x in TICKS if abs(math.log(x)) <= reach]
        axes.set_xticks([math.log(x) for x in marks], [f"{x:g}" for x in marks])
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=9)
    axes.set_xlabel(f"← better        {AXES[suite['part']]}        worse →", fontsize=9)
    axes.set_title(TITLES[suite["part"]], fontsize=10, loc="left")
    tidy(axes, "left")


def _scaled(task: Plain, found: Plain, smooth: bool) -> list[float]:
    """Return a comparison and its interval where less is better: logarithms, percents or points."""
    kept = [found[name] for name in ("amount", "high", "low")]
    ends = [math.nan if x is None else -x for x in kept]
    return ends if smooth or task["unit"] == "points" else [100 * math.expm1(end) for end in ends]


def _row_label(task: Plain) -> str:
    rival = label(task["family_best"]) if task["family_best"] else "nobody"
    name = task["task"].replace("_", " ")
    return f"{name}\nversus {rival}{'' if task['solved'] else ', unsolved'}"
