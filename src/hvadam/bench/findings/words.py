"""Numbers of ``results/evidence.json`` in words; what has no number never gets one."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hvadam.bench import stats
from hvadam.bench.report.looks import look
from hvadam.bench.report.numbers import MINUS, Units
from hvadam.bench.report.tables import escape

Content = Mapping[str, Any]
LINE = 100
STANDINGS = ("ahead", "tie", "behind", "unsettled")
# The tasks as they ran: the titles that they have by themselves are of the full protocols.
NAMES = {
    "digits_mlp": "MLP, digits",
    "digits_cnn": "CNN, digits",
    "fashion_mnist_cnn": "small CNN, Fashion-MNIST",
    "cifar10_vgg11": "small VGG, CIFAR-10",
    "cifar10_resnet34": "small ResNet, CIFAR-10",
    "cifar10_vit_b16": "small ViT, CIFAR-10",
    "shakespeare_lstm": "small LSTM, Shakespeare",
    "ptb_lstm1": "small LSTM, Penn Treebank",
    "wikitext2_transformer": "small transformer, WikiText-2",
    "multi30k_transformer": "small transformer, Multi30k",
    "wgan": "small WGAN",
    "wgan_gp": "small WGAN-GP",
    "sngan": "small SN-GAN",
    "diffusion": "small diffusion model",
}


def units_of(board: Content) -> Units:
    """How a board's values are written."""
    metric = stats.Metric(board["metric"], board["goal"])
    entries = board["entries"].values() if "entries" in board else board["levels"]
    values = [[v for v in entry["values"] if v is not None] for entry in entries]
    return Units(metric, values, board["measured"])


def lost(entry: Content) -> str:
    """Why most of an entry's runs have no value worth a number; empty if they have."""
    if 2 * entry["collapsed"] > entry["n"]:
        return "collapsed"
    return "diverged" if entry["median"] is None else ""


def value(entry: Content, units: Units) -> str:
    """Median and interval, and how many runs came to no end."""
    if why := lost(entry):
        return why
    low, high = (units.value(_float(entry[end])) for end in ("low", "high"))
    text = f"{units.value(entry['median'])} [{low}, {high}]"
    for why in ("diverged", "collapsed"):
        if entry[why]:
            text += f", {entry[why]} of {entry['n']} {why}"
    return text


def duel(board: Content, found: Content | None, *names: str) -> str:
    """A paired difference with its interval and what it amounts to, between entries of a board."""
    if not found:
        return "–"
    entries = [board["entries"][name] for name in names]
    if any(map(lost, entries)):
        return f"no number, {standing(found)}"
    return f"{difference(found, units_of(board))} {standing(found)}"


def difference(found: Content, units: Units) -> str:
    """A paired difference with its interval; of runs that have none, no number."""
    middle, low, high = (_float(found[key]) for key in ("difference", "low", "high"))
    if not math.isfinite(middle):
        return "no number,"
    hidden = found["standing"] in ("ahead", "behind") and not units.change(middle).strip("0.")
    write = (lambda x: _tiny(x * units.factor)) if hidden else units.change
    return f"{write(middle)} [{write(low)}, {write(high)}]"


def percent(found: Content, digits: int = 1) -> str:
    """The same in percent of the other's median, more being better."""
    ends = [_float(x) for x in found["percent"]]
    if not math.isfinite(ends[0]):
        return "–"
    middle, low, high = (_percent(x, digits) for x in ends)
    return f"{middle}% [{low}, {high}]"


def standing(found: Content) -> str:
    """One word; two where the seeds agree but are too few to tell."""
    if found["standing"] != "unsettled" or found["leans"] is None:
        return found["standing"]
    return f"{'ahead' if found['leans'] == 'better' else 'behind'}, unsettled"


def count(duels: Iterable[Content]) -> dict[str, int]:
    """How many of each standing."""
    counts = Counter(duel["standing"] for duel in duels)
    return {name: counts[name] for name in STANDINGS}


def counted(counts: Mapping[str, int], unit: str = "task") -> str:
    """Counts as a clause.

    Example:
        >>> counted({"ahead": 2, "tie": 7, "behind": 1, "unsettled": 0})
        'is ahead on 2 of 10 tasks, ties on 7 and is behind on 1'
        >>> counted({"ahead": 0, "tie": 1, "behind": 0, "unsettled": 0})
        'ties on 1 of 1 task'
    """
    total = sum(counts.values())
    said = {
        "ahead": "is ahead on {}",
        "tie": "ties on {}",
        "behind": "is behind on {}",
        "unsettled": "is unsettled on {}",
    }
    parts = [text.format(counts[key]) for key, text in said.items() if counts[key]]
    if not parts:
        return "has nothing to be compared on"
    parts[0] += f" of {total} {unit}{'s' * (total != 1)}"
    return listed(parts)


def listed(parts: Sequence[str]) -> str:
    """With commas, and "and" before the last.

    Example:
        >>> listed(["a", "b", "c"]), listed(["a"]), listed([])
        ('a, b and c', 'a', 'nothing')
    """
    if not parts:
        return "nothing"
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """In Markdown."""
    lines = [heads, *rows]
    written = [
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    ]
    return "\n".join([written[0], "|" + "---|" * len(heads), *written[1:]])


def wrapped(text: str) -> str:
    """Sentences and lists in lines of at most 100 signs; tables, headings and pictures as they are.

    Example:
        >>> wrapped("| a table |\\n- " + 40 * "one " + "end").splitlines()[2]
        '  one one one one one one one one one one one one one one one one end'
    """
    lines: list[str] = []
    for line in text.splitlines():
        if len(line) <= LINE or line[0] in "|#!<":
            lines.append(line)
            continue
        first = re.match(r" *(- |\d+\. )?", line)
        indent = " " * len(first[0]) if first else ""
        lines += textwrap.wrap(
            line, LINE, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    return "\n".join(lines)


def label(name: str) -> str:
    """An entry's name for people."""
    return escape(look(name).label)


def title(board: Content) -> str:
    """A task's name for people, as it ran."""
    return NAMES.get(board["task"], escape(board["title"]))


def rate(lr: float) -> str:
    """A learning rate, shortly.

    Example:
        >>> rate(0.001), rate(0.03)
        ('1e-3', '3e-2')
    """
    mantissa, _, exponent = f"{lr:.2e}".partition("e")
    digits = mantissa.rstrip("0").rstrip(".")
    return f"{digits}e{int(exponent)}" if not 0.1 <= lr < 100 else f"{lr:g}"


def short(cost: Any) -> str:
    """A shortfall in percent.

    Example:
        >>> short(0.0), short(1.234), short("inf"), short(None)
        ('0%', '1.2%', 'diverged', '–')
    """
    if cost is None:
        return "–"
    if math.isinf(_float(cost)):
        return "diverged"
    return "0%" if cost == 0 else f"{cost:.1f}%" if cost < 10 else f"{cost:.0f}%"


def _tiny(x: float) -> str:
    """A settled difference of less than the values' last digit."""
    return f"{x:+.1g}".replace("-", MINUS)


def _percent(x: float, digits: int) -> str:
    if math.isinf(x):
        return "+∞" if x > 0 else f"{MINUS}∞"
    text = f"{x:+.{digits}f}"
    return (text[1:] if not text.strip("+-0.") else text).replace("-", MINUS)


def _float(x: Any) -> float:
    return math.nan if x is None else float(x)
