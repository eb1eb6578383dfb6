"""Step times as charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from hvadam_bench.contenders import OURS, REFERENCE
from hvadam_bench.pages.figures import blank, label_end, plain_ticks, save, tidy
from hvadam_bench.pages.formatting import amount
from hvadam_bench.pages.palette import look
from hvadam_bench.studies.speed.results import Growth, Measurement, Speed, contender_names

MARK = "#000000"
# HVAdam's variants in one panel: its own colour, then others that are told apart.
FAMILY = tuple(look(name).light for name in (OURS, "yogi", "adabelief", "sgd"))


def draw(found: Speed, folder: Path) -> list[Path]:
    """Draw what there is into a folder; return the pictures."""
    drawn = {"speed": draw_shapes(found)} if found.shapes else {}
    if found.growth:
        drawn["growth"] = draw_growth(found, found.growth)
    return [save(figure, folder / f"{name}.png") for name, figure in drawn.items()]


def draw_shapes(found: Speed) -> Figure:
    """Draw the ratios to fused Adam above, below the bandwidth that each contender reaches."""
    names = contender_names(found.shapes)
    columns = len(found.shapes)
    figure = blank(2.2 + 0.62 * len(names), width=max(9.0, 3.4 + 3.6 * columns))
    axes = figure.subplots(2, columns, squeeze=False, sharey="row", sharex="row")
    for (above, below), measured in zip(axes.T, found.shapes, strict=True):
        in_memory = not found.fits_cache(measured)
        _draw_ratios(above, measured, names, in_memory)
        _draw_bandwidth(below, measured, names, found)
        above.set_title(measured.title, fontweight="bold")
        if not in_memory:
            below.set_title("its tensors fit the cache: no limit by memory", fontsize="small")
    _scale_ratios(axes[0, 0], found.shapes)
    axes[1, 0].set_xlim(right=1.18 * axes[1, 0].get_xlim()[1])
    for row in axes[:, 0]:
        row.set_yticks(range(len(names)), names)
        row.invert_yaxis()
    figure.legend(handles=_handles(found), loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(
        "Optimizer steps versus fused Adam\n"
        f"median of {found.plan.rounds} rounds, whiskers are quartiles; threads: {found.threads}"
    )
    return figure


def draw_growth(found: Speed, growth: Growth) -> Figure:
    """Draw the time per parameter: a level line is linear growth."""
    figure = blank(5.0, width=12.0)
    left, right = figure.subplots(1, 2, sharey=True)
    by_parameters, by_tensors = growth.by_parameters, growth.by_tensors
    names = contender_names([*by_parameters, *by_tensors])
    _draw_times(left, by_parameters, names, lambda measured: measured.parameters)
    _draw_times(right, by_tensors, names, lambda measured: measured.tensors)
    left.set(title="one tensor", xlabel="parameters", ylabel="nanoseconds per parameter and step")
    total = amount(by_tensors[0].parameters) if by_tensors else ""
    right.set(title=f"{total} parameters in ever more tensors", xlabel="tensors")
    plain_ticks(left.yaxis)
    left.legend(frameon=False)
    figure.suptitle(
        "How the time of a step grows: a level line is linear growth\n"
        f"median of {found.plan.rounds} rounds; threads: {found.threads}"
    )
    return figure


def _draw_times(
    axes: Axes,
    measured: Sequence[Measurement],
    names: Sequence[str],
    count: Callable[[Measurement], int],
) -> None:
    for i, name in enumerate(names):
        rows = [(count(one), one.of(name)) for one in measured]
        points = [(x, 1e6 * row.milliseconds / row.parameters) for x, row in rows if row]
        if points:
            own = _is_ours(name)
            colour = FAMILY[i % len(FAMILY)] if own else _colour(name)
            x, y = zip(*points, strict=True)
            axes.plot(x, y, label=name, color=colour, ls="-" if own else "--", marker="o")
    axes.set(xscale="log", yscale="log")
    axes.xaxis.set_major_locator(FixedLocator([count(one) for one in measured]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: amount(x)))
    tidy(axes, grid=True)


def _draw_ratios(axes: Axes, measured: Measurement, names: Sequence[str], in_memory: bool) -> None:
    """Draw bars that start at 1: to the right slower than fused Adam, to the left faster."""
    for y, name in enumerate(names):
        row = measured.of(name)
        if row is None:
            axes.text(1.05, y, "skipped", va="center", fontsize="small", color="gray")
            continue
        ratio = row.ratio
        axes.barh(y, ratio.median - 1, left=1, height=0.62, color=_colour(name), alpha=0.8)
        axes.plot([ratio.q1, ratio.q3], [y, y], color=MARK, lw=1, solid_capstyle="butt")
        if in_memory:
            axes.plot(row.limit, y, color=MARK, marker="|", ms=13, mew=2)
        furthest = max(1.0, ratio.q3, row.limit if in_memory else 0.0)
        label_end(axes, f"{ratio.median:.2f}", furthest, y)
    axes.axvline(1, color=MARK, lw=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("time / time of fused Adam")
    axes.grid(axis="x", alpha=0.25)
    tidy(axes)


def _draw_bandwidth(axes: Axes, measured: Measurement, names: Sequence[str], found: Speed) -> None:
    for y, name in enumerate(names):
        row = measured.of(name)
        if row is None:
            continue
        axes.barh(y, row.gb_per_second, height=0.62, color=_colour(name), alpha=0.8)
        label_end(axes, f"{row.gb_per_second:.1f}", row.gb_per_second, y)
    axes.axvline(found.copy_rate, color=MARK, ls=":", lw=1.2)
    axes.axvline(found.fastest_rate, color=MARK, ls="--", lw=1.2)
    axes.set_xlabel("GB/s of the bytes that must move")
    axes.grid(axis="x", alpha=0.25)
    tidy(axes)


def _handles(found: Speed) -> list[Line2D]:
    copy = f"copying memory: {found.copy_rate:.1f} GB/s"
    fastest = f"fastest simple pass: {found.fastest_rate:.1f} GB/s"
    return [
        Line2D([], [], color=MARK, marker="|", ms=14, mew=2, ls="", label="memory-bound limit"),
        Line2D([], [], color=MARK, ls=":", label=copy),
        Line2D([], [], color=MARK, ls="--", label=fastest),
    ]


def _scale_ratios(axes: Axes, measured: Sequence[Measurement]) -> None:
    """Leave room for all bars and their labels, the same in every panel."""
    rows = [row for one in measured for row in one.results]
    values = [x for row in rows for x in (row.ratio.q1, row.ratio.q3, row.limit)]
    axes.set_xlim(min(1.0, *values) / 1.3, max(1.0, *values) * 2.6)
    plain_ticks(axes.xaxis)


def _is_ours(name: str) -> bool:
    return name.startswith("HVAdam")


def _colour(name: str) -> str:
    return look(OURS if _is_ours(name) else REFERENCE).light
