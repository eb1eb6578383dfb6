"""The figure that explains the method: the line, the foot, and the two parts of the step.

    python website/method_figure.py docs/figures

writes it for light and for dark ground. What it shows is computed: the left
half is the second step in the valley of the paper's Fig. 3, the right half a step further on.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hvadam.core.hyperparams import Hyperparams
from hvadam.core.reference import ScopeState, Slot, step
from hvadam_bench.pages import palette
from hvadam_bench.pages.figures import blank, on_ground, save
from hvadam_bench.pages.palette import BLUE, GREY, RED, shade

Vector = NDArray[np.float64]
GRADIENTS = (np.array([5.0, -3.0]), np.array([-3.0, 5.0]))
NAME = "method"


class Construction(NamedTuple):
    """The vectors of one step: v before it, the momentum, and v after it."""

    old: Vector
    momentum: Vector
    foot: Vector


def construct() -> Construction:
    """Return the second step between the walls of Fig. 3, by the reference."""
    slot, scope = Slot(np.zeros(2), Hyperparams(lr=0.0)), ScopeState()
    step(scope, [slot], [GRADIENTS[0]])
    old = slot.v
    step(scope, [slot], [GRADIENTS[1]])
    return Construction(old, slot.m / (1 - 0.9**2), slot.v)


def write(folder: Path) -> list[Path]:
    """Write the figure on both grounds; return the files."""
    written = []
    for name, chosen in (("light", palette.LIGHT), ("dark", palette.DARK)):
        with on_ground(chosen), rc_context({"path.sketch": (0.5, 90, 12)}):
            written.append(save(draw(), folder / f"{NAME}-{name}.svg"))
    return written


def draw() -> Figure:
    """Draw both halves on the ground chosen."""
    figure = blank(2.9, 7.2)
    figure.patch.set_sketch_params(None)  # paper has straight edges
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.05))
    for axes, title in ((left, "1. Find the trend"), (right, "2. Take two steps")):
        axes.set_title(title, fontsize=13, loc="left", fontweight="bold")
        axes.set_aspect("equal")
        axes.axis("off")
    _draw_foot(left, construct())
    _draw_steps(right)
    return figure


def _draw_foot(axes: Axes, found: Construction) -> None:
    """Draw the line through v and the momentum, and the perpendicular from 0 onto it."""
    ink, red = palette.ground().ink, shade(RED)
    along = found.momentum - found.old
    ends = np.array([found.old - 0.16 * along, found.momentum + 0.42 * along])
    axes.plot(*ends.T, ls=(0, (5, 3)), lw=1.4, color=GREY)
    corner = -0.45 * np.array([one / np.linalg.norm(one) for one in (found.foot, along)])
    square = found.foot + np.array([corner[0], corner.sum(0), corner[1]])
    axes.plot(*square.T, lw=1.2, color=red)
    _arrow(axes, (0, 0), found.old, ink, 2.0)
    _arrow(axes, (0, 0), found.momentum, ink, 2.0)
    _arrow(axes, (0, 0), found.foot, red, 3.4)
    axes.plot(0, 0, "o", color=ink, ms=6)
    for text, at, colour in (
        ("0", (-0.6, -0.55), ink),
        ("old v", _beside(found.old, -1.9, 0.1), ink),
        ("momentum m̂", _beside(found.momentum, -3.0, 0.35), ink),
        ("new v: the point\nnearest to 0", _beside(found.foot, 0.45, -0.2), red),
        ("the line\nthrough both", (3.75, -0.75), ink),
    ):
        _write(axes, at, text, colour)
    axes.set_xlim(-2.4, 6.2)
    axes.set_ylim(-3.7, 2.6)


def _draw_steps(axes: Axes) -> None:
    """Draw a zigzag down a valley, and the two parts of its last step."""
    ink, blue, red = palette.ground().ink, shade(BLUE), shade(RED)
    floor = np.array([1.0, 1.0]) / np.sqrt(2)
    across = np.array([1.0, -1.0]) / np.sqrt(2)
    for level in (0.55, 1.1, 1.65, 2.2):
        corners = [4 * level * floor, level * across, -4 * level * floor, -level * across]
        axes.plot(*np.array([*corners, corners[0]]).T, lw=0.9, color=GREY, alpha=0.7)
    zigzag = np.array([(4.8 - 0.42 * i) * floor + 0.38 * (-1) ** i * across for i in range(6)])
    axes.plot(*zigzag.T, lw=1.6, color=ink, alpha=0.55)
    here = zigzag[-1]
    adaptive = here - 0.3 * floor + 0.75 * across
    there = adaptive - 2.3 * floor
    _arrow(axes, here, adaptive, blue, 2.6)
    _arrow(axes, adaptive, there, red, 3.4)
    axes.plot(*here, "o", color=ink, ms=6)
    axes.plot(0, 0, "x", color=ink, ms=8, mew=2)
    for text, at, colour in (
        ("θ", _beside(here, -0.45, 0.35), ink),
        ("the adaptive step:\neach coordinate\nby itself", _beside(adaptive, 0.35, -0.15), blue),
        ("the hidden step:\nalong v, longer\nthe longer v and m̂\nhave agreed", (-3.4, 2.3), red),
        ("zigzag", (3.5, 2.6), ink),
    ):
        _write(axes, at, text, colour)
    axes.set_xlim(-3.5, 5.2)
    axes.set_ylim(-2.3, 4.0)


def _arrow(axes: Axes, start: Any, end: Any, colour: str, width: float) -> None:
    style = {"arrowstyle": "-|>,head_width=0.28,head_length=0.55", "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops={**style, "color": colour, "lw": width})


def _beside(point: Vector, x: float, y: float) -> tuple[float, float]:
    """Return a place for a label, that far from a point."""
    return float(point[0]) + x, float(point[1]) + y


def _write(axes: Axes, at: tuple[float, float], text: str, colour: str) -> None:
    """Write a label over whatever lines are below it."""
    blot = {"facecolor": palette.ground().paper, "edgecolor": "none", "pad": 0.5, "alpha": 0.8}
    written = axes.text(at[0], at[1], text, color=colour, fontsize=11.5, va="center", bbox=blot)
    written.set_sketch_params(None)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(Path(sys.argv[1]))
