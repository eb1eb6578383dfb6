"""How a contender is named and drawn, the same in every table and chart of the page."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple
from zlib import crc32

from hvadam import optimizers

OURS, REFERENCE = "hvadam", "adam"
# HVAdam as it grows from Adam: the paper's ablation, whose last step is HVAdam itself.
ABLATION = ("hvadam0", "hvadam1", "hvadam2")


class Look(NamedTuple):
    """A contender's name for people, its colour on light and on dark ground, dashes and width."""

    label: str
    light: str
    dark: str
    dash: str
    width: float


# Hues of Okabe and Ito, told apart under every common colour blindness, each in a shade for either
# ground. Contenders that share a hue differ in their dashes.
_BLUE = ("#0072B2", "#4AA8E0")
_GREEN = ("#00805D", "#2FC79B")
_PURPLE = ("#B0568A", "#E39BC5")
_ORANGE = ("#B97F00", "#E69F00")
_SKY = ("#2D8FC4", "#7CCBF5")
_OLIVE = ("#8A8000", "#E0D545")
_GREY = ("#5C6066", "#B4B9C0")
_RED = ("#D55E00", "#FF8A3D")
_HUES = (_BLUE, _GREEN, _PURPLE, _ORANGE, _SKY, _OLIVE, _GREY)
_SOLID, _DASH, _DOT, _DASHDOT, _LONG = "solid", "7px,4px", "2px,3px", "7px,3px,2px,3px", "12px,4px"
_DASHES = (_DASH, _DOT, _DASHDOT, _LONG)

_LOOKS = {
    "sgd": ("SGD", _GREEN, _LONG),
    "sgd_ema": ("SGD-EMA", _GREEN, _DASHDOT),
    "adam": ("Adam", _BLUE, _DASH),
    "adamw": ("AdamW", _GREY, _LONG),
    "rmsprop": ("RMSprop", _ORANGE, _DOT),
    "radam": ("RAdam", _SKY, _DASHDOT),
    "msvag": ("MSVAG", _OLIVE, _DASHDOT),
    "yogi": ("Yogi", _ORANGE, _DASHDOT),
    "adabound": ("AdaBound", _GREEN, _DOT),
    "fromage": ("Fromage", _OLIVE, _DASH),
    "adabelief": ("AdaBelief", _PURPLE, _DASHDOT),
    "adai": ("Adai", _PURPLE, _DOT),
    "padam": ("Padam", _SKY, _DOT),
    "swa": ("SWA", _GREY, _DASHDOT),
    "lookahead": ("Lookahead", _SKY, _LONG),
    "lookaround": ("Lookaround", _GREY, _DASH),
    "lion": ("Lion", _ORANGE, _LONG),
    "muon": ("Muon", _OLIVE, _LONG),
    "schedule_free_adamw": ("Schedule-free", _SKY, _DASH),
    "hvadam": ("HVAdam", _RED, _SOLID),
    "hvadam0": ("HVAdam⁰", _RED, _DOT),
    "hvadam1": ("HVAdam¹", _RED, _DASHDOT),
    "hvadam2": ("HVAdam²", _RED, _DASH),
}


def look(name: str) -> Look:
    """HVAdam has the one wide solid line; a contender that is not known is grey and dotted.

    A variant of HVAdam has its colour, with dashes by the variant's name; one of another contender
    has a hue by it as well.

    Example:
        >>> look("padam (p 1/8)").label
        'Padam (p 1/8)'
    """
    contender, bracket, variant = name.partition(" (")
    label, hue, dash = _LOOKS.get(contender, (contender, _GREY, _DOT))
    if variant:
        chance = crc32(variant.encode())
        dash = _DASHES[chance % len(_DASHES)]
        hue = hue if contender == OURS else _HUES[chance // len(_DASHES) % len(_HUES)]
    light, dark = hue
    return Look(label + bracket + variant, light, dark, dash, 3.4 if name == OURS else 1.8)


@cache  # the registry looks through its folder at every question
def rank(name: str) -> tuple[int, str]:
    """To sort by: HVAdam, then Adam, then the others in the order of the registry."""
    contender = name.partition(" (")[0]
    first = [OURS, REFERENCE, *optimizers.names()]
    return (first.index(contender) if contender in first else len(first), name)
