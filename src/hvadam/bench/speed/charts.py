"""Measurements as figures."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from hvadam.bench.speed.report import Context, amount, contender_names, result_of
from hvadam.bench.speed.timing import Growth, Measurement

# Colours of Okabe and Ito, told apart under every common colour blindness.
HVADAM, OTHERS, MARK = "#D55E00", "#0072B2", "#000000"
FAMILY = ("#D55E00", "#E69F00", "#CC79A7", "#009E73")


def draw(measured: Sequence[Measurement], context: Context) -> Figure:
    """Above the ratios to fused Adam, below the bandwidth that each contender reaches."""
    names = contender_names(measured)
    size = (max(9.0, 3.4 + 3.6 * len(measured)), 2.2 + 0.62 * len(names))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(2, len(measured), squeeze=False, sharey="row", sharex="row")
    for column, measurement in enumerate(measured):
        above, below = axes[0, column], axes[1, column]
        in_memory = not context.fits_cache(measurement)
        _draw_ratios(above, measurement, names, in_memory)
        _draw_bandwidth(below, measurement, names, context)
        above.set_title(measurement.shape.title, fontweight="bold")
        if not in_memory:
            below.set_title("its tensors fit the cache: no limit by memory", fontsize="small")
    _scale_ratios(axes[0, 0], measured)
    axes[1, 0].set_xlim(right=1.18 * axes[1, 0].get_xlim()[1])
    for row in axes[:, 0]:
        row.set_yticks(range(len(names)), names)
        row.invert_yaxis()
    limit = Line2D([], [], color=MARK, marker="|", ms=14, mew=2, ls="", label="memory-bound limit")
    copy = Line2D([], [], color=MARK, ls=":", label=f"copying memory: {context.copy:.1f} GB/s")
    fastest = Line2D(
        [], [], color=MARK, ls="--", label=f"fastest simple pass: {context.fastest:.1f} GB/s"
    )
    handles = [limit, copy, fastest]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(
        "Optimizer steps beside fused Adam\n"
        f"median of {context.plan.rounds} rounds, whiskers are quartiles; "
        f"threads: {context.threads}"
    )
    return figure


def draw_growth(growth: Growth, context: Context) -> Figure:
    """Time per parameter: a level line is linear growth."""
    by_parameters, by_tensors = growth
    figure = Figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    names = contender_names([*by_parameters, *by_tensors])
    for axes, measured, count in (
        (left, by_parameters, lambda m: m.shape.parameters),
        (right, by_tensors, lambda m: len(m.shape.sizes)),
    ):
        for i, name in enumerate(names):
            rows = [(count(m), result_of(m, name)) for m in measured]
            points = [(x, 1e9 * r.typical_seconds / r.parameters) for x, r in rows if r]
            if points:
                own = name.startswith("HVAdam")
                color, dashes = (FAMILY[i % len(FAMILY)], "-") if own else (OTHERS, "--")
                axes.plot(*zip(*points, strict=True), dashes, color=color, marker="o", label=name)
        axes.set(xscale="log", yscale="log")
        ticks = [count(m) for m in measured]
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: amount(x)))
        axes.grid(alpha=0.25, which="both")
        axes.spines[["top", "right"]].set_visible(False)
    left.set(title="one tensor", xlabel="parameters", ylabel="nanoseconds per parameter and step")
    total = amount(by_tensors[0].shape.parameters) if by_tensors else ""
    right.set(title=f"{total} parameters in ever more tensors", xlabel="tensors")
    _plain_ticks(left)
    left.legend(frameon=False)
    figure.suptitle(
        "How the time of a step grows: a level line is linear growth\n"
        f"median of {context.plan.rounds} rounds; threads: {context.threads}"
    )
    return figure


def _draw_ratios(
    axes: Axes, measurement: Measurement, names: Sequence[str], in_memory: bool
) -> None:
    """Bars that start at 1: to the right slower than fused Adam, to the left faster."""
    for y, name in enumerate(names):
        row = result_of(measurement, name)
        if row is None:
            axes.text(1.05, y, "skipped", va="center", fontsize="small", color="gray")
            continue
        q1, median, q3 = row.ratio
        axes.barh(y, median - 1, left=1, height=0.62, color=_color(name), alpha=0.8)
        axes.plot([q1, q3], [y, y], color=MARK, lw=1, solid_capstyle="butt")
        if in_memory:
            axes.plot(row.limit, y, color=MARK, marker="|", ms=13, mew=2)
        furthest = max(1.0, q3, row.limit if in_memory else 0.0)
        _label(axes, f"{median:.2f}", furthest, y)
    axes.axvline(1, color=MARK, lw=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("time / time of fused Adam")
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_bandwidth(
    axes: Axes, measurement: Measurement, names: Sequence[str], context: Context
) -> None:
    for y, name in enumerate(names):
        row = result_of(measurement, name)
        if row is None:
            continue
        axes.barh(y, row.gb_per_second, height=0.62, color=_color(name), alpha=0.8)
        _label(axes, f"{row.gb_per_second:.1f}", row.gb_per_second, y)
    axes.axvline(context.copy, color=MARK, ls=":", lw=1.2)
    axes.axvline(context.fastest, color=MARK, ls="--", lw=1.2)
    axes.set_xlabel("GB/s of the bytes that must move")
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _label(axes: Axes, text: str, x: float, y: float) -> None:
    """A number right of a bar, readable over the lines that cross it."""
    axes.annotate(
        text,
        (x, y),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize="small",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.6},
    )


def _scale_ratios(axes: Axes, measured: Sequence[Measurement]) -> None:
    """Room for all bars and their labels, the same in every panel."""
    values = [1.0] + [x for m in measured for row in m.results for x in (*row.ratio, row.limit)]
    axes.set_xlim(min(values) / 1.3, max(values) * 2.6)
    _plain_ticks(axes, axis="x")


def _plain_ticks(axes: Axes, axis: str = "y") -> None:
    """0.1, 0.2, 0.5, 1, ... instead of powers of ten."""
    along = axes.xaxis if axis == "x" else axes.yaxis
    low, high = axes.get_xlim() if axis == "x" else axes.get_ylim()
    ticks = [m * 10.0**e for e in range(-4, 5) for m in (1, 2, 5)]
    shown = [tick for tick in ticks if low <= tick <= high]
    if len(shown) > 9:
        shown = [tick for tick in shown if f"{tick:e}".startswith("1")]
    along.set_major_locator(FixedLocator(shown))
    along.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    along.set_minor_formatter(NullFormatter())


def _color(name: str) -> str:
    return HVADAM if name.startswith("HVAdam") else OTHERS
