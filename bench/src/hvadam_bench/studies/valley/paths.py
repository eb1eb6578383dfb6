"""Single runs in full from one start, drawn: what Figs. 1, 2 and 3 of the paper show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hvadam.core.hyperparams import Hyperparams
from hvadam.core.reference import ScopeState, Slot, step
from hvadam_bench.contenders import OURS
from hvadam_bench.pages.figures import blank, legend_line, save, tidy
from hvadam_bench.pages.palette import GREY, line, look
from hvadam_bench.studies.valley.functions import Array, Pair, Problem
from hvadam_bench.studies.valley.result import PAPER_FOUR

SHOWN = 1500  # points of a path on the surface; more cannot be seen
FEW = 8  # contenders that can be told apart in one panel
CROSS = "#E69F00"

Box = tuple[Pair, Pair]
Paths = Mapping[str, Array]  # contender -> x, y and loss after 0, 1, 2, ... steps


def draw(
    problem: Problem, contenders: Sequence[str], steps: int, out: Path, start: Sequence[float] = ()
) -> Path:
    """Run contenders from one start at the paper's rate, draw their paths and return the figure.

    Too many to be told apart stand for the paper's four. The start is in x, the function's own if
    none is given; ``out`` is where ``docs/figures/`` lies.
    """
    from hvadam_bench.studies.valley.race import COMMON_LR

    first = np.array(start or problem.function.start, dtype=np.float64)
    paths = {name: follow(problem, name, COMMON_LR, first, steps) for name in few(contenders)}
    figure = draw_paths(problem, paths, steps)
    title = (
        f"{problem.label}: {problem.function.formula}{', turned' if problem.turned else ''}\n"
        f"from ({first[0]:g}, {first[1]:g}), {steps} steps, learning rate {COMMON_LR:g} for all"
    )
    figure.suptitle(title, fontsize="medium")
    return save(figure, out / "docs" / "figures" / f"valley-{problem.label}.png")


def few(contenders: Sequence[str]) -> list[str]:
    """Return those whose lines are drawn: all, or the paper's four of too many."""
    if len(contenders) <= FEW:
        return list(contenders)
    return [name for name in contenders if name in PAPER_FOUR]


def follow(problem: Problem, contender: str, lr: float, start: Array, steps: int) -> Array:
    """Return x, y and loss of one run after 0, 1, 2, ... steps, fewer rows if it diverges."""
    from hvadam_bench.studies.valley.race import walk

    rows: list[Array] = []
    for x, loss in islice(walk(problem, contender, lr, start[None], steps), steps + 1):
        if np.isinf(loss[0]):
            break
        rows.append(np.array([*x[0], loss[0]]))
    return np.array(rows)


def draw_paths(problem: Problem, paths: Paths, steps: int) -> Figure:
    """Draw all contenders from one start: plane, close-up, surface and losses."""
    figure = blank(7.6, width=7.2)
    plane, near = figure.add_subplot(2, 2, 1), figure.add_subplot(2, 2, 2)
    surface = figure.add_subplot(2, 2, 3, projection="3d")
    window = _around(problem, paths)
    # Around the end of the one that got least far, where the others have passed.
    last = max(paths.values(), key=lambda path: path[-1, 2])
    closer = _box(last[-1, :2], 0.035 * (window[0][1] - window[0][0]))
    _draw_plane(plane, problem, paths, window)
    _draw_plane(near, problem, paths, closer)
    (left, right), (low, high) = closer
    corners = ([left, right, right, left, left], [low, low, high, high, low])
    plane.plot(*corners, color="red", lw=1.2, zorder=6)
    plane.set_title("paths", fontsize="medium")
    near.set_title("the red box", fontsize="medium")
    _draw_surface(surface, problem, paths, window)
    axes = figure.add_subplot(2, 2, 4)
    for name, path in paths.items():
        axes.plot(np.arange(len(path)), path[:, 2], **_line(name))
    axes.set(yscale="log", xlabel="step")
    axes.set_title("loss", fontsize="medium")
    tidy(axes, grid=True)
    handles = [legend_line(name) for name in paths]
    for handle, path in zip(handles, paths.values(), strict=True):
        if len(path) <= steps:
            handle.set_label(f"{handle.get_label()} (diverged)")
    columns = min(4, len(handles))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _around(problem: Problem, paths: Paths) -> Box:
    """Return a box around the start, the minimum, and the paths so far as they stay near."""
    minimiser, start = problem.minimiser, next(iter(paths.values()))[0, :2]
    points = [start[None], minimiser[None]]
    reach = 3 * np.abs(start - minimiser).max() + 0.1
    for path in paths.values():
        points.append(path[np.abs(path[:, :2] - minimiser).max(1) <= reach, :2])
    low, high = (find(np.concatenate(points), axis=0) for find in (np.min, np.max))
    return _box((low + high) / 2, 0.56 * float((high - low).max()))


def _box(middle: Array, half: float) -> Box:
    x, y = (float(c) for c in middle)
    return (x - half, x + half), (y - half, y + half)


def _line(name: str) -> dict[str, Any]:
    return line(name) | {"zorder": 3 if name == OURS else 4}  # the widest, below the others


def _draw_plane(axes: Axes, problem: Problem, paths: Paths, window: Box) -> None:
    x, y, height = _heights(problem, window, 160)
    axes.contour(x, y, height, levels=18, colors=GREY, linewidths=0.5)
    end: dict[str, Any] = {"marker": "s", "ms": 6, "mec": "white", "ls": "", "zorder": 6}
    start = next(iter(paths.values()))[0]
    for name, path in paths.items():
        axes.plot(*path[:, :2].T, **_line(name))
        axes.plot(*path[-1, :2], color=look(name).light, **end)
    axes.plot(*start[:2], marker="o", ms=6, color="black", ls="", zorder=7)
    axes.plot(*problem.minimiser, marker="x", ms=10, mew=2.5, color=CROSS, ls="", zorder=8)
    axes.set(xlim=window[0], ylim=window[1], aspect="equal")
    axes.tick_params(labelsize="small")
    axes.locator_params(nbins=5)


def _draw_surface(axes: Any, problem: Problem, paths: Paths, window: Box) -> None:
    x, y, height = _heights(problem, window, 60)
    axes.computed_zorder = False  # otherwise lines hide behind others by their mean distance
    axes.plot_surface(x, y, height, cmap="Greys", alpha=0.45, lw=0, rcount=40, ccount=40, zorder=1)
    low, high = np.array(window).T
    for name, path in paths.items():
        shown = path[:: max(1, len(path) // SHOWN)]
        inside = shown[((low <= shown[:, :2]) & (shown[:, :2] <= high)).all(1)]
        axes.plot(*inside[:, :2].T, np.log1p(problem.evaluate(inside[:, :2])[0]), **_line(name))
    axes.plot(*problem.minimiser, 0.0, marker="x", ms=9, mew=2.5, color=CROSS, zorder=12)
    axes.view_init(elev=38, azim=-62)
    axes.tick_params(labelsize="x-small", pad=-2)
    axes.set_zticks([])
    axes.set_title("surface: log(1 + loss)", fontsize="medium")


def _heights(problem: Problem, window: Box, count: int) -> tuple[Array, Array, Array]:
    """Return a grid and log(1 + loss) on it: the walls would hide the floor."""
    x, y = np.meshgrid(*(np.linspace(*side, count) for side in window))
    loss, _ = problem.evaluate(np.stack([x.ravel(), y.ravel()], 1))
    return x, y, np.log1p(loss).reshape(x.shape)


def triangle(count: int = 5) -> list[tuple[Array, Array, Array]]:
    """Return gradient, m̂ and v of the first steps on the function of Fig. 3, by the reference."""
    slot, scope = Slot(np.zeros(2), Hyperparams(lr=0.0)), ScopeState()
    rows: list[tuple[Array, Array, Array]] = []
    for t in range(1, count + 1):
        gradient = np.array([5.0, -3.0] if t % 2 else [-3.0, 5.0])
        step(scope, [slot], [gradient])
        rows.append((gradient, slot.m / (1 - 0.9**t), slot.v.copy()))
    return rows


def draw_triangle() -> Figure:
    """Draw Fig. 3's triangle: the new v is the foot of the perpendicular onto v, m̂."""
    (_, _, old), (_, average, new) = triangle(2)
    figure = blank(6.0)
    axes = figure.subplots()
    ends = np.stack([old, old + 1.35 * (average - old)])
    axes.plot(*ends.T, color=GREY, lw=1.2, ls="--", zorder=1)
    for tip, name, text, shift in (
        (old, OURS, "v after step 1 = (5, −3)", (-150, -4)),
        (average, "adam", f"m̂ of step 2 = ({average[0]:.4f}, {average[1]:.4f})", (6, 20)),
        (new, OURS, f"v after step 2 = ({new[0]:.3g}, {new[1]:.3g}) = v*", (26, 8)),
    ):
        colour = look(name).light
        style = {"arrowstyle": "-|>", "color": colour, "lw": 2, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (tip[0], tip[1]), (0, 0), arrowprops=style)
        axes.annotate(text, (tip[0], tip[1]), shift, textcoords="offset points", color=colour)
    one, other = (0.22 * side / np.linalg.norm(side) for side in (old - new, -new))
    axes.plot(*np.stack([new + one, new + one + other, new + other]).T, color="black", lw=1)
    axes.plot(0, 0, "o", color="black", ms=5)
    axes.set(xlim=(-1.2, 5.6), ylim=(-3.6, 3.0), aspect="equal", xlabel="x", ylabel="y")
    tidy(axes, grid=True)
    axes.set_title(
        "Fig. 3 again: f = 4·|x − y| + |x + y|, gradients (5, −3), (−3, 5)\n"
        "two steps find the hidden vector",
        fontsize="medium",
    )
    return figure
