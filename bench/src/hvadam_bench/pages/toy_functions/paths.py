"""Figs. 1, 2 and 3 of the paper drawn again: paths, a close-up, the surface, the losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hvadam_bench.contenders import OURS
from hvadam_bench.pages.figures import blank, legend_line, tidy
from hvadam_bench.pages.palette import GREY, line, look
from hvadam_bench.studies.toy_functions import triangle
from hvadam_bench.studies.toy_functions.functions import Array, Problem
from hvadam_bench.studies.toy_functions.paths import Paths
from hvadam_bench.studies.toy_functions.result import PAPER_FOUR

SHOWN = 1500  # points of a path on the surface; more cannot be seen
FEW = 8  # contenders that can be told apart in one panel
CROSS = "#E69F00"

Box = tuple[tuple[float, float], tuple[float, float]]


def few(contenders: Sequence[str]) -> list[str]:
    """Return those whose lines are drawn: all, or the paper's four of too many."""
    if len(contenders) <= FEW:
        return list(contenders)
    return [name for name in contenders if name in PAPER_FOUR]


def draw(paths: Paths) -> Figure:
    """Draw all contenders from one start: plane, close-up, surface and losses."""
    figure = blank(7.6, width=7.2)
    plane, near = figure.add_subplot(2, 2, 1), figure.add_subplot(2, 2, 2)
    surface = figure.add_subplot(2, 2, 3, projection="3d")
    window, closer = _around(paths), _closer(paths)
    _draw_plane(plane, paths, window)
    _draw_plane(near, paths, closer)
    (left, right), (low, high) = closer
    corners = ([left, right, right, left, left], [low, low, high, high, low])
    plane.plot(*corners, color="red", lw=1.2, zorder=6)
    plane.set_title("paths", fontsize="medium")
    near.set_title("the red box", fontsize="medium")
    _draw_surface(surface, paths, window)
    _draw_losses(figure.add_subplot(2, 2, 4), paths)
    handles = [_handle(name, one.diverged) for name, one in paths.traces.items()]
    columns = min(4, len(handles))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
    problem, at = paths.problem, ", ".join(f"{x:g}" for x in paths.start)
    turned = "" if problem.angle == problem.function.angle else ", turned"
    figure.suptitle(
        f"{problem.label}: {problem.function.formula}{turned}\n"
        f"from ({at}), {paths.steps} steps, learning rate {paths.lr:g} for all",
        fontsize="medium",
    )
    return figure


def draw_triangle() -> Figure:
    """Draw Fig. 3's triangle: the new v is the foot of the perpendicular onto v, m̂."""
    first, second = triangle.steps(2)
    old, average, new = (np.array(x) for x in (first.hidden, second.average, second.hidden))
    figure = blank(6.0)
    axes = figure.subplots()
    ends = np.stack([old, old + 1.35 * (average - old)])
    axes.plot(*ends.T, color=GREY, lw=1.2, ls="--", zorder=1)
    hidden, other = look(OURS).light, look("adam").light
    found = f"v after step 2 = ({new[0]:.3g}, {new[1]:.3g}) = v*"
    _draw_arrow(axes, old, hidden, "v after step 1 = (5, −3)", (-150, -4))
    _draw_arrow(
        axes, average, other, f"m̂ of step 2 = ({average[0]:.4f}, {average[1]:.4f})", (6, 20)
    )
    _draw_arrow(axes, new, hidden, found, (26, 8))
    _draw_right_angle(axes, new, old - new)
    axes.plot(0, 0, "o", color="black", ms=5)
    axes.set(xlim=(-1.2, 5.6), ylim=(-3.6, 3.0), aspect="equal", xlabel="x", ylabel="y")
    tidy(axes, grid=True)
    axes.set_title(
        "Fig. 3 again: f = 4·|x − y| + |x + y|, gradients (5, −3), (−3, 5)\n"
        "two steps find the hidden vector",
        fontsize="medium",
    )
    return figure


def _line(name: str) -> dict[str, Any]:
    return line(name) | {"zorder": 3 if name == OURS else 4}  # the widest, below the others


def _handle(name: str, diverged: bool) -> Line2D:
    handle = legend_line(name)
    if diverged:
        handle.set_label(f"{handle.get_label()} (diverged)")
    return handle


def _around(paths: Paths) -> Box:
    """Return a box around the start, the minimum, and the paths so far as they stay near."""
    minimiser = paths.problem.minimiser
    points = [paths.start[None], minimiser[None]]
    reach = 3 * np.abs(paths.start - minimiser).max() + 0.1
    for one in paths.traces.values():
        points.append(one.path[np.abs(one.path - minimiser).max(1) <= reach])
    every = np.concatenate(points)
    return _box(
        (every.min(0) + every.max(0)) / 2, 0.56 * float((every.max(0) - every.min(0)).max())
    )


def _closer(paths: Paths) -> Box:
    """Return a box around the end of whoever got least far, where the others have passed."""
    last = max(paths.traces.values(), key=lambda one: one.losses[-1])
    (left, right), _ = _around(paths)
    return _box(last.path[-1], 0.035 * (right - left))


def _box(middle: Array, half: float) -> Box:
    x, y = (float(c) for c in middle)
    return (x - half, x + half), (y - half, y + half)


def _draw_plane(axes: Axes, paths: Paths, window: Box) -> None:
    x, y, height = _heights(paths.problem, window, 160)
    axes.contour(x, y, height, levels=18, colors=GREY, linewidths=0.5)
    for name, one in paths.traces.items():
        axes.plot(*one.path.T, **_line(name))
        end = {"marker": "s", "ms": 6, "mec": "white", "ls": "", "zorder": 6}
        axes.plot(*one.path[-1], color=look(name).light, **end)
    axes.plot(*paths.start, marker="o", ms=6, color="black", ls="", zorder=7)
    axes.plot(*paths.problem.minimiser, marker="x", ms=10, mew=2.5, color=CROSS, ls="", zorder=8)
    axes.set(xlim=window[0], ylim=window[1], aspect="equal")
    axes.tick_params(labelsize="small")
    axes.locator_params(nbins=5)


def _draw_surface(axes: Any, paths: Paths, window: Box) -> None:
    problem = paths.problem
    x, y, height = _heights(problem, window, 60)
    axes.computed_zorder = False  # else whole lines hide behind others by their mean distance
    axes.plot_surface(x, y, height, cmap="Greys", alpha=0.45, lw=0, rcount=40, ccount=40, zorder=1)
    low, high = np.array(window).T
    for name, one in paths.traces.items():
        points = one.path[:: max(1, len(one.path) // SHOWN)]
        inside = ((low <= points) & (points <= high)).all(1)
        shown = _flatten(problem.evaluate(points)[0])
        axes.plot(*points[inside].T, shown[inside], **_line(name))
    axes.plot(*problem.minimiser, 0.0, marker="x", ms=9, mew=2.5, color=CROSS, zorder=12)
    axes.view_init(elev=38, azim=-62)
    axes.tick_params(labelsize="x-small", pad=-2)
    axes.set_zticks([])
    axes.set_title("surface: log(1 + loss)", fontsize="medium")


def _draw_losses(axes: Axes, paths: Paths) -> None:
    for name, one in paths.traces.items():
        axes.plot(np.arange(len(one.losses)), one.losses, **_line(name))
    axes.set(yscale="log", xlabel="step")
    axes.set_title("loss", fontsize="medium")
    tidy(axes, grid=True)


def _heights(problem: Problem, window: Box, count: int) -> tuple[Array, Array, Array]:
    x, y = np.meshgrid(*(np.linspace(*side, count) for side in window))
    loss, _ = problem.evaluate(np.stack([x.ravel(), y.ravel()], 1))
    return x, y, _flatten(loss).reshape(x.shape)


def _flatten(loss: Array) -> Array:
    """Return log(1 + loss): the walls would hide the floor."""
    return np.log1p(loss)


def _draw_arrow(axes: Axes, tip: Array, colour: str, text: str, shift: tuple[float, float]) -> None:
    at = (float(tip[0]), float(tip[1]))
    style = {"arrowstyle": "-|>", "color": colour, "lw": 2, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", at, (0, 0), arrowprops=style)
    axes.annotate(text, at, shift, textcoords="offset points", color=colour)


def _draw_right_angle(axes: Axes, corner: Array, along: Array) -> None:
    side = 0.22
    one = along / np.linalg.norm(along) * side
    other = -corner / np.linalg.norm(corner) * side
    corners = np.stack([corner + one, corner + one + other, corner + other])
    axes.plot(*corners.T, color="black", lw=1)
