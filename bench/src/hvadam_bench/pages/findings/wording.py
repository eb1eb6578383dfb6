"""Numbers of the evidence as they are written; what has no number never gets one."""

from __future__ import annotations

import math

from hvadam_bench.contenders import label
from hvadam_bench.pages.formatting import (
    CLOSE,
    NOTHING,
    Units,
    listed,
    number,
    ranged,
    relative,
    share,
    signed,
)
from hvadam_bench.pages.markdown import escape
from hvadam_bench.studies.evidence.result import Beside, Dose, Entrant, Number, TaskEvidence, Unit

_ARROWS = {"min": "↓", "max": "↑"}


def title(task: TaskEvidence | Dose) -> str:
    """Return what was run, for a cell of a table."""
    return escape(task.title)


def measure(task: TaskEvidence) -> str:
    """Return what is judged, and whether less or more of it is better."""
    return f"{units_of(task).name} {_ARROWS[task.goal]}"


def units_of(task: TaskEvidence) -> Units:
    """Return how a task's values are written."""
    values = [[x for x in one.values if x is not None] for one in task.contenders.values()]
    return Units(task.measure, values)


def value(x: Number, task: TaskEvidence) -> str:
    """Return where a run ended: losses that are told by factors in two digits, whatever their size.

    Other values have as many decimals as their spread over seeds allows.
    """
    if x is None:
        return "diverged"
    told_by_factors = task.unit == "factor" and task.margin >= CLOSE
    return number(x, 2) if told_by_factors else units_of(task).value(x)


def median(one: Entrant, task: TaskEvidence) -> str:
    """Return the median over runs, and how many of them came to no end."""
    lost = f", {one.diverged} of {len(one.values)} diverged" if one.diverged else ""
    return value(one.median, task) + (lost if one.median is not None else "")


def difference(found: Beside, unit: Unit, margin: float) -> str:
    """Return a paired difference with its interval.

    A ratio of losses is ours over theirs, so that below 1 is better; where so little matters that
    it is better told in percent, it is. Points of accuracy are better above 0.

    Example:
        >>> found = Beside("adam", 10, math.log(2), 0.0, math.log(4), 0.01, "ahead")
        >>> difference(found, "factor", 0.223)
        '×0.50 [0.25, 1.0]'
        >>> difference(found, "factor", 0.005)
        '−50% [−75, 0]'
        >>> difference(found, "points", 0.3)
        '+0.69 [0.00, +1.39]'
    """
    if found.amount is None or found.low is None or found.high is None:
        return NOTHING
    if unit == "points":
        return ranged(found.amount, found.low, found.high, lambda x: signed(x, 2))
    return relative(found.amount, found.low, found.high, margin)


def ratio(amount: float) -> float:
    """Return the ratio of losses, ours over theirs, of a logarithm that counts more as better."""
    return math.exp(-amount)


def smallest(task: TaskEvidence) -> str:
    """Return the smallest difference that matters on a task."""
    return amount(task.margin, task.unit, task.margin)


def amount(x: Number, unit: Unit, margin: float) -> str:
    """Return a difference without a sign: a factor, percents or points.

    Example:
        >>> amount(math.log(1.25), "factor", 0.223), amount(0.005, "factor", 0.005)
        ('a factor of 1.25', '0.50%')
        >>> amount(0.3, "points", 0.3), amount(None, "points", 0.3)
        ('0.30 points', '–')
    """
    if x is None:
        return NOTHING
    if unit == "points":
        return f"{x:.2f} points"
    return f"{100 * math.expm1(x):.2f}%" if margin < CLOSE else f"a factor of {math.exp(x):.3g}"


def beside(task: TaskEvidence, rival: str | None) -> str:
    """Return HVAdam beside a rival on a task, and what it amounts to."""
    found = task.duels.get(rival or "")
    if found is None:
        return NOTHING
    return f"{difference(found, task.unit, task.margin)} {verdict(task, found)}"


def verdict(task: TaskEvidence, found: Beside) -> str:
    """Return one word on a comparison; none where nobody solves the task."""
    return found.verdict if task.solved else "no verdict"


def arrived(one: Entrant) -> str:
    """Return the share of runs that solved the task."""
    return NOTHING if one.arrived is None else share(one.arrived)


def decay(task: TaskEvidence) -> str:
    """Return the weight decay that a task's runs worked with; several if they differ."""
    return listed(sorted({one.decay for one in task.contenders.values()}))


def named(name: str | None) -> str:
    """Return a contender's label."""
    return NOTHING if name is None else label(name)
