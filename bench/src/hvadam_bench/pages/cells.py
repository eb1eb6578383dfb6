"""What a cell says of a contender on a task, the same on the page and in the terminal.

Brackets hold one kind of interval each: of values the 95% bootstrap interval of the median over
seeds, of differences the 95% interval of the mean difference, by sign flips.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.effects import FEWEST_PAIRS, Judgement
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.analysis.judging import median_of, scale_of
from hvadam_bench.pages.formatting import NOTHING, Units, counted, relative, smallest
from hvadam_bench.pages.palette import label
from hvadam_bench.pages.tables import Cell


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
    one: ContenderRuns,
    reference: ContenderRuns | None,
    task: TaskResults,
    judged: Mapping[str, Judgement],
) -> Cell:
    """Return the paired difference to another contender and what it amounts to.

    Args:
        one: Whose cell it is.
        reference: Whom it is compared with.
        task: Their results.
        judged: What `judge_against` says of everyone beside the reference.
    """
    if reference is None:
        return Cell(NOTHING, records=one.judged)
    if cut := [runs for runs in (one, reference) if runs.is_cut]:
        return Cell(f"no verdict: {label(cut[0].name)} is not finished", records=cut[0].rest)
    if one is reference:
        return Cell("reference", records=one.judged)
    found = judged.get(one.name)
    if found is None:
        return Cell(NOTHING, records=one.judged)
    records = [*one.judged, *reference.judged]
    if not found.effect.n:
        return Cell("no seed in common", records=records)
    told = amount(found, one, reference, task)
    text = f"{told}{',' if 'diverged' in told else ''} {found.word}"
    text += f" ({more_seeds(found.more_seeds)})" if found.more_seeds else ""
    return Cell(text, records=records, judgement=found)


def more_seeds(count: int) -> str:
    """Return how many more seeds would decide.

    Example:
        >>> more_seeds(1), more_seeds(1001)
        ('1 more seed', 'over 1,000 more seeds')
    """
    return "over 1,000 more seeds" if count > 1000 else counted(count, "more seed")


def amount(
    found: Judgement,
    one: ContenderRuns,
    reference: ContenderRuns,
    task: TaskResults,
    *,
    brief: bool = False,
) -> str:
    """Return a paired difference with its interval, where it has bounds; or who diverged.

    Ratios and percents are of ours over theirs, differences in points ours minus theirs.
    """
    for runs in (one, reference):
        if not math.isfinite(median_of(runs, task.metric)):
            return "diverged" if runs is one else f"{label(runs.name)} diverged"
    effect, units = found.effect, units_of(task)
    low, high = (-math.inf, math.inf) if brief else effect.interval[:2]
    if effect.scale.kind == "factor":
        return relative(effect.estimate, low, high, effect.scale.margin)
    sign = 1 if effect.scale.goal == "max" else -1
    middle = sign * effect.estimate
    low, high = sorted((sign * low, sign * high))
    decided = found.verdict in ("ahead", "behind")
    if not math.isfinite(low + high):
        return units.change(middle)
    return units.difference(middle, statistics.Interval(low, high, 0.95), settled=decided)


def reading_of_verdicts(task: TaskResults, comparisons: int) -> str:
    """Return how to read differences and verdicts: the test, what is too small, what leans."""
    scale = scale_of(task)
    least = smallest(scale.margin)
    if scale.kind == "points":
        least = f"{scale.margin * units_of(task).factor:.3g}{units_of(task).unit}"
    return (
        "the mean difference on the same seeds, ours over theirs or ours minus theirs, with its "
        "95% interval by sign flips, which fewer than six seeds do not have. Ahead, behind: an "
        f"exact test at 5%, corrected for {counted(comparisons, 'comparison')}. Equal: surely "
        f"within {least}. Fewer than {FEWEST_PAIRS} seeds only lean. More seeds: so many would "
        "decide an effect of that size and spread, four times in five."
    )
