"""What a cell says of a contender on a task, the same on the page and in the terminal.

Brackets hold one kind of interval: of values the 95% bootstrap interval of the median over seeds,
of differences that of the median difference, at a level that allows for all comparisons.
"""

from __future__ import annotations

import math

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.analysis.verdicts import Leaning, Standing, leaning, median_of, standing
from hvadam_bench.publishing.formatting import NOTHING, Units
from hvadam_bench.publishing.pages import say
from hvadam_bench.publishing.palette import label
from hvadam_bench.publishing.tables import Cell


def units_of(task: TaskResults) -> Units:
    """Return how the values of a task are written."""
    everyone = task.contenders.values()
    values = [[statistics.final(run, task.metric) for run in one.judged] for one in everyone]
    return Units(task.metric, values, task.measured)


def value_cell(one: ContenderRuns, task: TaskResults, units: Units, *, mark: bool = False) -> Cell:
    """Return the median over the judged runs; with its interval if there are several."""
    values = [statistics.final(run, task.metric) for run in one.judged]
    if not values:
        return Cell("no judged runs", records=one.rest)
    middle = median_of(one, task.metric)
    if not math.isfinite(middle):
        return Cell("diverged", records=one.judged)
    interval = statistics.bootstrap(values) if len(values) > 1 else None
    return Cell(units.spread(middle, interval), mark, records=one.judged)


def against_cell(
    one: ContenderRuns, reference: ContenderRuns | None, task: TaskResults, units: Units
) -> Cell:
    """Return the paired difference to another contender and what it amounts to."""
    if reference is None:
        return Cell(NOTHING, records=one.judged)
    if cut := [runs for runs in (one, reference) if runs.is_cut]:
        return Cell(f"no verdict: {label(cut[0].name)} is not finished", records=cut[0].rest)
    if one is reference:
        return Cell("reference", records=one.judged)
    if not one.judged:
        return Cell(NOTHING, records=one.judged)
    found = task.against(one, reference)
    records = [*one.judged, *reference.judged]
    if not found.n:
        return Cell("no seed in common", records=records)
    if not math.isfinite(found.difference):
        lost = found.difference == task.metric.worst
        return Cell("diverged" if lost else f"{label(reference.name)} diverged", records=records)
    amount = units.difference(found.difference, found.interval, settled=found.settled)
    return Cell(f"{amount} {verdict_word(found)}", records=records, comparison=found)


def verdict_word(found: statistics.Comparison) -> str:
    """Return what a comparison amounts to: ahead, tie, behind, leans so or so, too few seeds."""
    return standing_word(standing(found), leaning(found))


def standing_word(standing: Standing, leaning: Leaning | None) -> str:
    """Return how a contender stands beside another, or which way it leans.

    Example:
        >>> standing_word("tie", None), standing_word("unsettled", "ahead")
        ('tie', 'leans ahead')
        >>> standing_word("unsettled", None)
        'too few seeds'
    """
    return say("report.txt.j2", "standing", standing, leaning)
