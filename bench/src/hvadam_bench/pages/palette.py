"""How a contender is drawn, the same in every table, chart and figure.

Labels come from the contenders' own files. So may a new contender: without a line in `_LOOKS` it
takes the first hue and dashes that nobody has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple
from zlib import crc32

from hvadam_bench import contenders
from hvadam_bench.contenders import OURS, label


class Ground(NamedTuple):
    """What a picture is drawn on: its paper, the ink on it, and bands that part rows."""

    paper: str
    ink: str
    band: str


class Hue(NamedTuple):
    """A colour in its shades for light and for dark ground."""

    light: str
    dark: str


class Look(NamedTuple):
    """A contender's label, its colour on light and on dark ground, its dashes and width."""

    label: str
    light: str
    dark: str
    dash: str
    width: float


LIGHT = Ground("#FFFFFF", "#000000", "#E8E8E8")
DARK = Ground("#14171B", "#E6E8EB", "#262B32")  # as pages have it
_GROUND: ContextVar[Ground] = ContextVar("ground", default=LIGHT)
# What is not settled, not there, or nobody's, on either ground.
GREY = "#9A9A9A"
# Hues of Okabe and Ito, told apart under every common colour blindness, each in a shade for either
# ground. Contenders that share a hue differ in their dashes.
BLUE = Hue("#0072B2", "#4AA8E0")
GREEN = Hue("#00805D", "#2FC79B")
_PURPLE = Hue("#B0568A", "#E39BC5")
_ORANGE = Hue("#B97F00", "#E69F00")
_SKY = Hue("#2D8FC4", "#7CCBF5")
_OLIVE = Hue("#8A8000", "#E0D545")
_ASH = Hue("#5C6066", "#B4B9C0")
RED = Hue("#D55E00", "#FF8A3D")
_HUES = (BLUE, GREEN, _PURPLE, _ORANGE, _SKY, _OLIVE, _ASH)
_SOLID, _DASH, _DOT, _DASHDOT, _LONG = "solid", "7px,4px", "2px,3px", "7px,3px,2px,3px", "12px,4px"
_DASHES = (_DASH, _DOT, _DASHDOT, _LONG)

_LOOKS = {
    "sgd": (GREEN, _LONG),
    "sgd_ema": (GREEN, _DASHDOT),
    "adam": (BLUE, _DASH),
    "adamw": (_ASH, _LONG),
    "nadam": (BLUE, _DOT),
    "rmsprop": (_ORANGE, _DOT),
    "radam": (_SKY, _DASHDOT),
    "msvag": (_OLIVE, _DASHDOT),
    "yogi": (_ORANGE, _DASHDOT),
    "adabound": (GREEN, _DOT),
    "fromage": (_OLIVE, _DASH),
    "adabelief": (_PURPLE, _DASHDOT),
    "adai": (_PURPLE, _DOT),
    "padam": (_SKY, _DOT),
    "swa": (_ASH, _DASHDOT),
    "lookahead": (_SKY, _LONG),
    "lookaround": (_ASH, _DASH),
    "lion": (_ORANGE, _LONG),
    "muon": (_OLIVE, _LONG),
    "schedule_free_adamw": (_SKY, _DASH),
    "ademamix": (_PURPLE, _LONG),
    "hvadam": (RED, _SOLID),
    "hvadam0": (RED, _DOT),
    "hvadam1": (RED, _DASHDOT),
    "hvadam2": (RED, _DASH),
    "zigzag": (RED, _LONG),
    "qhadam": (_OLIVE, _DOT),
    "lbfgs": (GREEN, _DASH),
    "adam_lbfgs": (BLUE, _LONG),
    "hvadam_lbfgs": (_ORANGE, _DASH),
}
_STRANGER = (_ASH, _DOT)


@contextmanager
def on_ground(chosen: Ground) -> Iterator[None]:
    """Choose the ground that lines and shades are for, within a block."""
    token = _GROUND.set(chosen)
    try:
        yield
    finally:
        _GROUND.reset(token)


def ground() -> Ground:
    """Return the ground that is drawn on: light, unless one was chosen."""
    return _GROUND.get()


def shade(hue: Hue) -> str:
    """Return a hue's shade on the ground that is drawn on."""
    return hue.dark if ground() is DARK else hue.light


def look(entrant: str) -> Look:
    """Return how a contender, or a variant of one, is drawn.

    HVAdam has the one wide solid line; who is not in the registry is grey and dotted. A variant of
    HVAdam has its colour, with dashes by the variant's name; one of another contender has a hue by
    it as well.
    """
    name, _, variant = entrant.partition(" (")
    hue, dash = _LOOKS.get(name) or _free(name)
    if variant:
        chance = crc32(variant.encode())
        dash = _DASHES[chance % len(_DASHES)]
        hue = hue if name == OURS else _HUES[chance // len(_DASHES) % len(_HUES)]
    light, dark = hue
    return Look(label(entrant), light, dark, dash, 3.4 if entrant == OURS else 1.8)


def line(entrant: str) -> dict[str, Any]:
    """Return how matplotlib draws a contender's line on the ground chosen."""
    found = look(entrant)
    dashes: Any = "-"
    if found.dash != _SOLID:
        dashes = (0, tuple(float(x.removesuffix("px")) / 2 for x in found.dash.split(",")))
    colour = shade(Hue(found.light, found.dark))
    return {"color": colour, "ls": dashes, "lw": 0.7 * found.width}


def _free(name: str) -> tuple[Hue, str]:
    """Return a look that no known contender has, for one of the registry."""
    new = [one for one in contenders.names() if one not in _LOOKS]
    taken = {*_LOOKS.values(), _STRANGER}
    left = [(hue, dash) for dash in _DASHES for hue in _HUES if (hue, dash) not in taken]
    return left[new.index(name) % len(left)] if name in new else _STRANGER
