"""How entries are drawn: the report's colours on light ground, in matplotlib's terms."""

from __future__ import annotations

from typing import Any, NamedTuple

from matplotlib.lines import Line2D

from hvadam.bench.report.looks import look

WIDTH = 6.4  # inches
GREY = "#9A9A9A"


class Mark(NamedTuple):
    """How one of several is marked in a row."""

    label: str
    shape: str
    colour: str
    size: float

    def handle(self) -> Line2D:
        """For a legend."""
        return Line2D(
            [], [], color=self.colour, marker=self.shape, ms=self.size, ls="-", label=self.label
        )


def line_of(name: str) -> dict[str, Any]:
    """An entry's line.

    Example:
        >>> line_of("hvadam")["ls"], line_of("adam")["ls"]
        ('-', (0, (3.5, 2.0)))
    """
    found = look(name)
    dashes: Any = "-"
    if found.dash != "solid":
        dashes = (0, tuple(float(x.removesuffix("px")) / 2 for x in found.dash.split(",")))
    return {"color": found.light, "ls": dashes, "lw": 0.7 * found.width}
