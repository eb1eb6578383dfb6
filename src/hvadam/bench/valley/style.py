"""How contenders look, the same in every figure."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

GREY = "#9A9A9A"
CROSS = "#E69F00"

# Colours of Okabe and Ito, told apart under every common colour blindness; dashes differ too.
_KNOWN: dict[str, tuple[str, str, Any, float]] = {
    "sgd_ema": ("SGDM", "#009E73", "-.", 1.6),
    "adam": ("Adam", "#0072B2", "--", 1.6),
    "adabelief": ("AdaBelief", "#CC79A7", (0, (5, 1, 1, 1)), 1.6),
    "hvadam": ("HVAdam", "#D55E00", "-", 2.4),
}
_OTHERS = ("#56B4E9", "#000000", "#F0E442", "#7F5F00", "#666666", "#00406B", "#A8A800", "#8A2B00")


@dataclass(frozen=True)
class Style:
    """A contender's name in legends, and its line."""

    label: str
    line: dict[str, Any]

    @property
    def color(self) -> str:
        return self.line["color"]


def style_of(name: str) -> Style:
    """The paper's four look as always; another takes the colour of its place among the others."""
    if name in _KNOWN:
        label, color, dashes, width = _KNOWN[name]
    else:
        # By name, so that a contender has one colour in all figures of all runs.
        place = sum(map(ord, name)) % len(_OTHERS)
        label, color, dashes, width = name, _OTHERS[place], ":", 1.6
    layer = 3 if name == "hvadam" else 4  # the widest, below the others
    return Style(label, {"color": color, "ls": dashes, "lw": width, "zorder": layer})


def save(figure: Figure, path: Path) -> Path:
    """As a PNG of few colours: small, and what a page needs."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=110)
    # An octree keeps the colours of thin lines apart, which medians over all pixels would merge.
    few = Image.open(drawn).convert("RGB").quantize(256, Image.Quantize.FASTOCTREE)
    few.save(path, optimize=True)
    return path
