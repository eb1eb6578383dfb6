"""What all figures share: their width, how they are saved, marks, intervals, labels.

They are at most 7.2 inches wide with type of at least 8 points, so that a phone shows them legibly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from PIL import Image

from hvadam_bench.pages import palette
from hvadam_bench.pages.palette import GREY, Ground, Hue, label, line, shade
from hvadam_bench.running.files import write_atomically

WIDTH = 6.4  # inches


class Mark(NamedTuple):
    """The mark of one of several that share a row."""

    label: str
    shape: str
    hue: Hue
    size: float
    hollow: bool = False

    def style(self, colour: str) -> dict[str, Any]:
        """Return how matplotlib draws the mark in a colour."""
        inside = palette.ground().paper if self.hollow else colour
        return {"color": colour, "marker": self.shape, "ms": self.size, "mfc": inside}

    def handle(self) -> Line2D:
        """Return the mark for a legend."""
        return Line2D([], [], ls="-", label=self.label, **self.style(shade(self.hue)))


@contextmanager
def on_ground(chosen: Ground) -> Iterator[None]:
    """Draw and save on light or dark ground, within a block."""
    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    papered = ("figure.facecolor", "axes.facecolor")
    colours: dict[Any, str] = dict.fromkeys(inked, chosen.ink)
    colours |= dict.fromkeys(papered, chosen.paper)
    with palette.on_ground(chosen), rc_context(colours):
        yield


def blank(height: float, width: float = WIDTH) -> Figure:
    """Return an empty figure that leaves room for all its labels."""
    return Figure(figsize=(width, height), layout="constrained")


def encode(figure: Figure) -> bytes:
    """Return a figure as a PNG of few colours, without metadata: the same drawing, same bytes."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=110, metadata={"Software": None})
    # An octree keeps the colours of thin lines apart, which medians over all pixels would merge.
    few = Image.open(drawn).convert("RGB").quantize(256, Image.Quantize.FASTOCTREE)
    made = BytesIO()
    few.save(made, "PNG", optimize=True)
    return made.getvalue()


def encode_svg(figure: Figure, name: str) -> bytes:
    """Return a figure as an SVG without metadata: the same drawing, same bytes.

    Its paths are rounded to a tenth of a point: half the size, and looks the same. `name` keeps the
    anchors of several figures on one page apart.
    """

    def rounded(path: re.Match[str]) -> str:
        return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}", path[0])

    drawn = BytesIO()
    with rc_context({"svg.hashsalt": name}):
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r' d="[^"]*"', rounded, drawn.getvalue().decode()).encode()


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as a PNG or as an SVG, whichever its name says; return its path."""
    is_svg = path.suffix == ".svg"
    write_atomically(path, encode_svg(figure, path.stem) if is_svg else encode(figure))
    return path


def tidy(axes: Axes, *also: str, grid: bool = False) -> None:
    """Take away the frame above, on the right and on the sides named; draw a grid if asked."""
    axes.spines[["top", "right", *also]].set_visible(False)
    if grid:
        axes.grid(alpha=0.25)


def legend_line(contender: str) -> Line2D:
    """Return a contender's line for a legend."""
    return Line2D([], [], label=label(contender), **line(contender))


def plain_ticks(axis: Axis) -> None:
    """Label a logarithmic axis at 1, 2, 5, 10, ... instead of powers of ten."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def draw_interval(
    axes: Axes,
    ends: Sequence[float],
    y: float,
    mark: Mark,
    *,
    settled: bool = True,
    reach: float = math.inf,
) -> None:
    """Draw a value in its interval, both grey if nothing is settled by it.

    Args:
        axes: Where.
        ends: The value, then the lower and the upper end.
        y: The row.
        mark: Whose it is.
        settled: Whether it is told apart from none.
        reach: How far the picture goes to either side; what goes on beyond ends in an arrow.
    """
    colour = shade(mark.hue) if settled else GREY
    middle, low, high = ends
    inside = [max(-reach, min(reach, x)) for x in (low, high)]
    axes.plot(inside, [y, y], color=colour, lw=1.8, solid_capstyle="butt")
    for x, sign in ((low, "<"), (high, ">")):
        if abs(x) > reach:
            axes.plot(math.copysign(0.985 * reach, x), y, sign, color=colour, ms=5)
    if abs(middle) <= reach:
        axes.plot(middle, y, ls="", **mark.style(colour))


def label_end(axes: Axes, text: str, x: float, y: float) -> None:
    """Write a number right of a bar, readable over the lines that cross it."""
    axes.annotate(
        text,
        (x, y),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize="small",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.6},
    )


def write_cells(
    axes: Axes,
    values: np.ndarray,
    write: Callable[[float], str],
    is_dark: Callable[[float], bool],
    fontsize: float | str = "small",
) -> None:
    """Write its number into each cell of a map of colours, white where the ground is dark."""
    for (row, column), value in np.ndenumerate(values):
        dark = not np.isnan(value) and is_dark(value)
        axes.text(
            column,
            row,
            write(value),
            color="white" if dark else "black",
            ha="center",
            va="center",
            fontsize=fontsize,
        )
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
