"""The answer for a task: who is ahead of Adam, by how much and how surely."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.analysis.verdicts import Leaning, Standing, leaning, standing
from hvadam_bench.publishing.cells import units_of
from hvadam_bench.publishing.formatting import Units
from hvadam_bench.publishing.pages import say
from hvadam_bench.publishing.palette import OURS, REFERENCE, label
from hvadam_bench.publishing.report.tables import WORDS


@dataclass(frozen=True)
class Verdict:
    """HVAdam beside Adam on one task, and the others beside Adam.

    Attributes:
        standing: Of HVAdam; "none" without runs of both.
        leaning: The side that its seeds agree on.
        missing: Who has no runs.
        cut: Whose runs are not finished, so that nothing can be said.
        n, p: Seeds in common, and how often chance does as much.
        difference, interval, size: In the task's units.
        lost, won: Who diverged where who did not.
        collapsed: Those of the two whose samples are alike on most seeds.
        groups: The others by how they stand: "ahead", "level", "behind".
    """

    standing: Standing | Literal["none"]
    leaning: Leaning | None = None
    missing: str = ""
    cut: list[str] = field(default_factory=list)
    n: int = 0
    p: float = 1.0
    difference: str = ""
    interval: str = ""
    size: str = ""
    lost: str = ""
    won: str = ""
    collapsed: list[str] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """Return one plain sentence on HVAdam against Adam."""
        return say(WORDS, "verdict", self)

    @property
    def others(self) -> str:
        """Return who else is ahead of Adam, ties or is behind."""
        return say(WORDS, "others", self.groups)


def verdict(task: TaskResults) -> Verdict:
    """Return what a task says of HVAdam, and of the others in a line."""
    ours, reference = task.contenders.get(OURS), task.reference
    if reference is None:
        return Verdict("none", missing=REFERENCE)
    others = _field(task, reference)
    if ours is None or not ours.judged:
        return Verdict("none", missing=OURS, groups=others)
    if cut := [label(one.name) for one in (ours, reference) if one.is_cut]:
        return Verdict("none", cut=cut, groups=others)
    found, units = task.against(ours, reference), units_of(task)
    diverged = math.isinf(found.difference)
    pair = [label(OURS), label(REFERENCE)]
    lost, won = pair if found.difference == task.metric.worst else reversed(pair)
    return Verdict(
        _standing_of(found) if diverged else standing(found),
        leaning(found),
        n=found.n,
        p=found.p,
        difference=f"{units.change(found.difference)}{units.unit}",
        interval=f"[{units.change(found.interval.low)}, {units.change(found.interval.high)}]",
        size=size(found, task.metric, units),
        lost=lost if diverged else "",
        won=won,
        collapsed=[label(one.name) for one in (ours, reference) if _collapsed(one)],
        groups=others,
    )


def overall(verdicts: Iterable[Verdict]) -> str:
    """Return all tasks in one sentence.

    Example:
        >>> overall([Verdict("ahead"), Verdict("tie")])
        'Against Adam, HVAdam is ahead on 1 of 2 tasks and ties on 1.'
        >>> overall([])
        'There is nothing to compare yet: no task has finished runs of both HVAdam and Adam.'
    """
    counts = Counter(one.standing for one in verdicts if one.standing != "none")
    return say(WORDS, "overall", counts)


def size(found: statistics.Comparison, metric: statistics.Metric, units: Units) -> str:
    """Return how far ahead or behind, without a sign: less perplexity is ahead too."""
    ends = [found.interval.low, found.interval.high]
    if (found.verdict == "better") == (metric.goal == "min"):
        ends = [-end for end in reversed(ends)]
    return f"{units.value(abs(found.difference))}{units.unit} [{', '.join(map(units.bound, ends))}]"


def _standing_of(found: statistics.Comparison) -> Standing:
    """Return the standing where one of the two diverged on most seeds: no tie."""
    return (leaning(found) or "unsettled") if found.settled else "unsettled"


def _field(task: TaskResults, reference: ContenderRuns) -> dict[str, list[str]]:
    """Return the rest of the field against Adam."""
    units = units_of(task)
    groups: dict[str, list[str]] = {"ahead": [], "level": [], "behind": []}
    for one in task.race:
        if one is reference or one.name == OURS or not one.judged:
            continue
        if one.is_cut or reference.is_cut:
            continue
        found = task.against(one, reference)
        name = label(one.name) + (" (collapsed)" if _collapsed(one) else "")
        diverged = math.isinf(found.difference)
        if not found.settled:
            groups["level"].append(name)
        elif found.verdict == "worse":
            groups["behind"].append(f"{name} (diverged)" if diverged else name)
        else:
            by = ", for Adam diverged" if diverged else f" by {size(found, task.metric, units)}"
            groups["ahead"].append(name + by)
    return groups


def _collapsed(one: ContenderRuns) -> bool:
    return 2 * sum(run.status == "collapsed" for run in one.judged) > len(one.judged)
