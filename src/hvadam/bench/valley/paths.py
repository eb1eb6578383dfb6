"""Figs. 1, 2 and 3 of the paper drawn again: paths, a close-up, the surface, the losses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hvadam.bench.valley.functions import Array, Problem
from hvadam.bench.valley.race import COMMON_LR, PAPER_FOUR, Trace, trace
from hvadam.bench.valley.style import CROSS, GREY, save, style_of
from hvadam.core.hyperparams import Hyperparams
from hvadam.core.reference import ScopeState, Slot, step

SHOWN = 1500  # points of a path on the surface; more cannot be seen
FEW = 8  # contenders that can be told apart in one panel


def draw(
    problem: Problem, contenders: Sequence[str], start: Array, steps: int, folder: Path
) -> Path:
    """All contenders from one start: plane, close-up, surface and losses."""
    traces = {name: trace(problem, name, COMMON_LR, start, steps) for name in contenders}
    figure = Figure(figsize=(7.2, 7.6), layout="constrained")
    plane, near = figure.add_subplot(2, 2, 1), figure.add_subplot(2, 2, 2)
    surface = figure.add_subplot(2, 2, 3, projection="3d")
    losses = figure.add_subplot(2, 2, 4)
    window = _window(problem, start, traces)
    _draw_plane(plane, problem, traces, window)
    closer = _closer(traces, window)
    _draw_plane(near, problem, traces, closer)
    (left, right), (low, high) = closer
    plane.plot(
        [left, right, right, left, left], [low, low, high, high, low], color="red", lw=1.2, zorder=6
    )
    plane.set_title("paths", fontsize="medium")
    near.set_title("the red box", fontsize="medium")
    _draw_surface(surface, problem, traces, window)
    for name, one in traces.items():
        losses.plot(np.arange(len(one.losses)), one.losses, **style_of(name).line)
    losses.set(yscale="log", xlabel="step", title="loss")
    losses.title.set_fontsize("medium")
    losses.grid(alpha=0.25)
    losses.spines[["top", "right"]].set_visible(False)
    figure.legend(
        handles=[_handle(name, one) for name, one in traces.items()],
        loc="outside lower center",
        ncols=min(4, len(traces)),
        frameon=False,
    )
    at = ", ".join(f"{x:g}" for x in start)
    figure.suptitle(
        f"{_title(problem)}\nfrom ({at}), {steps} steps, learning rate {COMMON_LR:g} for all",
        fontsize="medium",
    )
    return save(figure, folder / f"valley-{problem.label}.png")


def few(contenders: Sequence[str]) -> list[str]:
    """Those whose paths are drawn: all, or the paper's four of too many."""
    if len(contenders) <= FEW:
        return list(contenders)
    return [name for name in contenders if name in PAPER_FOUR]


def _title(problem: Problem) -> str:
    own = problem.angle == problem.function.angle
    return f"{problem.label}: {problem.function.formula}" + ("" if own else ", turned")


def _handle(name: str, one: Trace) -> Line2D:
    style = style_of(name)
    return Line2D([], [], label=style.label + (" (diverged)" if one.diverged else ""), **style.line)


def _window(problem: Problem, start: Array, traces: dict[str, Trace]) -> list[tuple[float, float]]:
    """Around the start, the minimum, and the paths so far as they stay near."""
    points = [start[None], problem.minimiser[None]]
    reach = 3 * np.abs(start - problem.minimiser).max() + 0.1
    for one in traces.values():
        points.append(one.path[np.abs(one.path - problem.minimiser).max(1) <= reach])
    every = np.concatenate(points)
    middle = (every.min(0) + every.max(0)) / 2
    half = 0.56 * float((every.max(0) - every.min(0)).max())
    return [(float(c - half), float(c + half)) for c in middle]


def _closer(
    traces: dict[str, Trace], window: list[tuple[float, float]]
) -> list[tuple[float, float]]:
    """A box around the end of whoever got least far, where the others have passed."""
    last = max(traces.values(), key=lambda one: one.losses[-1])
    half = 0.035 * (window[0][1] - window[0][0])
    return [(float(c - half), float(c + half)) for c in last.path[-1]]


def _draw_plane(
    axes: Any, problem: Problem, traces: dict[str, Trace], window: list[tuple[float, float]]
) -> None:
    (left, right), (low, high) = window
    x, y, height = _heights(problem, window, 160)
    axes.contour(x, y, height, levels=18, colors=GREY, linewidths=0.5)
    for name, one in traces.items():
        line = style_of(name).line
        axes.plot(*one.path.T, **line)
        axes.plot(
            *one.path[-1], marker="s", ms=6, color=line["color"], mec="white", ls="", zorder=6
        )
    first = next(iter(traces.values())).path[0]
    axes.plot(*first, marker="o", ms=6, color="black", ls="", zorder=7)
    axes.plot(*problem.minimiser, marker="x", ms=10, mew=2.5, color=CROSS, ls="", zorder=8)
    axes.set(xlim=(left, right), ylim=(low, high), aspect="equal")
    axes.tick_params(labelsize="small")
    axes.locator_params(nbins=5)


def _draw_surface(
    axes: Any, problem: Problem, traces: dict[str, Trace], window: list[tuple[float, float]]
) -> None:
    x, y, height = _heights(problem, window, 60)
    axes.computed_zorder = False  # else whole lines hide behind others by their mean distance
    axes.plot_surface(x, y, height, cmap="Greys", alpha=0.45, lw=0, rcount=40, ccount=40, zorder=1)
    for name, one in traces.items():
        thin = max(1, len(one.path) // SHOWN)
        points = one.path[::thin]
        inside = np.all(
            [(a <= p) & (p <= b) for p, (a, b) in zip(points.T, window, strict=True)], 0
        )
        shown = _flatten(problem.evaluate(points)[0])
        axes.plot(*points[inside].T, shown[inside], **style_of(name).line)
    axes.plot(*problem.minimiser, 0.0, marker="x", ms=9, mew=2.5, color=CROSS, zorder=12)
    axes.view_init(elev=38, azim=-62)
    axes.tick_params(labelsize="x-small", pad=-2)
    axes.set_zticks([])
    axes.set_title("surface: log(1 + loss)", fontsize="medium")


def _heights(
    problem: Problem, window: list[tuple[float, float]], count: int
) -> tuple[Array, Array, Array]:
    x, y = np.meshgrid(*(np.linspace(*side, count) for side in window))
    loss, _ = problem.evaluate(np.stack([x.ravel(), y.ravel()], 1))
    return x, y, _flatten(loss).reshape(x.shape)


def _flatten(loss: Array) -> Array:
    """log(1 + loss): the walls would hide the floor."""
    return np.log1p(loss)


def triangle_steps(count: int = 5) -> list[dict[str, list[float]]]:
    """Fig. 3's table: gradient, average and hidden vector of each step, by the reference."""
    slot, scope = Slot(np.zeros(2), Hyperparams(lr=0.0)), ScopeState()
    rows = []
    for t in range(1, count + 1):
        gradient = np.array([5.0, -3.0] if t % 2 else [-3.0, 5.0])
        step(scope, [slot], [gradient])
        average = slot.m / (1 - 0.9**t)
        rows.append({"g": gradient.tolist(), "m_hat": average.tolist(), "v": slot.v.tolist()})
    return rows


def draw_triangle(folder: Path) -> Path:
    """Fig. 3's triangle: the new v is the foot of the perpendicular onto the line through v, m̂."""
    rows = triangle_steps()
    figure = Figure(figsize=(6.4, 6.0), layout="constrained")
    axes = figure.subplots()
    old, average, new = (np.array(x) for x in (rows[0]["v"], rows[1]["m_hat"], rows[1]["v"]))
    hidden, other = style_of("hvadam").line["color"], style_of("adam").line["color"]
    ends = np.stack([old, old + 1.35 * (average - old)])
    axes.plot(*ends.T, color=GREY, lw=1.2, ls="--", zorder=1)
    arrows = (
        (old, hidden, "v after step 1 = (5, −3)", (-150, -4)),
        (average, other, f"m̂ of step 2 = ({average[0]:.4f}, {average[1]:.4f})", (-30, 22)),
        (
            new,
            hidden,
            f"v after step 2 = ({new[0]:g}, {new[1]:g}) = v*".replace("1.0", "1"),
            (26, 8),
        ),
    )
    for tip, color, label, shift in arrows:
        axes.annotate(
            "",
            (tip[0], tip[1]),
            (0, 0),
            arrowprops={"arrowstyle": "-|>", "color": color, "lw": 2, "shrinkA": 0, "shrinkB": 0},
        )
        axes.annotate(label, (tip[0], tip[1]), shift, textcoords="offset points", color=color)
    _right_angle(axes, new, old - new)
    axes.plot(0, 0, "o", color="black", ms=5)
    axes.set(xlim=(-1.2, 5.6), ylim=(-3.6, 3.0), aspect="equal", xlabel="x", ylabel="y")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(
        "Fig. 3 again: f = 4·|x − y| + |x + y|, gradients (5, −3), (−3, 5)\n"
        "two steps find the hidden vector",
        fontsize="medium",
    )
    return save(figure, folder / "valley-triangle.png")


def _right_angle(axes: Any, corner: Array, along: Array) -> None:
    side = 0.22
    one = along / np.linalg.norm(along) * side
    other = -corner / np.linalg.norm(corner) * side
    axes.plot(
        *np.stack([corner + one, corner + one + other, corner + other]).T, color="black", lw=1
    )
