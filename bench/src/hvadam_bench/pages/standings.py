"""The tables of a task's results, and what each cell says, on the page and in the terminal alike.

Brackets hold one kind of interval each: of values the 95% bootstrap interval of the median over
seeds, of differences the 95% interval of the mean difference, by sign flips.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from hvadam_bench.analysis import profiles, statistics
from hvadam_bench.analysis.effects import FEWEST_PAIRS, Judgement
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults, describe_options, statuses
from hvadam_bench.analysis.judging import judge_against, leaders, median_of, scale_of
from hvadam_bench.contenders import ABLATION, label
from hvadam_bench.pages.formatting import (
    NOT_FID,
    NOTHING,
    Units,
    counted,
    relative,
    seconds,
    smallest,
)
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.running.records import MEASURED
from hvadam_bench.sweeping.contest_results import ContestResults
from hvadam_bench.sweeping.search import EXTENSIONS

_PARTS = {
    "hvadam0": "Adam, by HVAdam's kernels",
    "hvadam1": "+ the step along the hidden vector",
    "hvadam2": "+ the preconditioner from it",
    "hvadam": "+ restarts: HVAdam",
}


def standings(reading: ContestResults) -> Table:
    """Return the table of a contest: what each entry chose at what cost, and how it did."""
    contest, task = reading.contest, reading.results
    assert task is not None, "only contests with results have standings"
    judged = judge_against(task, contest.reference)
    reference = task.contenders.get(contest.reference)
    rows: list[dict[str, Cell | str]] = []
    for arm in contest.arms():
        one = task.contenders[arm.entry.entrant]
        against = {
            f"against {label(contest.reference)}": against_cell(one, reference, task, judged)
        }
        more = len(one.trials) - len(arm.trials)
        grown = f" (+{more}{' !' if one.at_edge else ''})" if more > 0 else ""
        rows.append(
            {
                "": Cell.of(one.name),
                f"test {units_of(task).name}": value_cell(one, task),
                **(against if reference else {}),
                "n": str(len(one.judged)),
                "lr chosen": describe_options(one.options),
                "trials": f"{len(one.trials)}{grown}",
                "examples": f"{one.tuning_examples:,}",
                "ended early": str(sum(run.status not in MEASURED for run in one.tuning) or ""),
            }
        )
    verdicts = f" against: {reading_of_verdicts(task, len(judged))}" if judged else ""
    told = (
        "test: median over n fresh seeds and its 95% bootstrap interval. lr chosen: on the "
        f"validation split, with what else was chosen.{verdicts} trials: with +n, of them n past "
        f"the grid's edge, at most {EXTENSIONS}; ! if the choice is still at the edge. examples: "
        "seen in tuning. ended early: trials that diverged or were pruned."
    )
    return Table.of_rows(rows, f"{task.title}, {contest.scale} scale", told)


def results(task: TaskResults) -> Table:
    """Return who ended where, how it compares with the reference, and how soon it got there."""
    reference, goal = task.reference, profiles.target_of(task)
    marked, rows = _compared(task, task.race, reference)
    timed = any(one.timed for one in task.race)
    for row, one in zip(rows, task.race, strict=True):
        shown = [*one.judged, *one.rest]
        edge = " (edge of those tried)" if one.at_edge else ""
        row["lr chosen"] = Cell(
            describe_options(one.options) + edge, records=one.tuning or one.judged
        )
        if timed:
            row["time per step"] = Cell(_pace(one), records=one.timed)
        if reference and goal is not None:
            steps, _ = profiles.middle_reached(one.judged, task.metric, goal)
            reached = f"{steps:,.0f}" if math.isfinite(steps) else "not reached"
            row[f"steps to {label(reference.name)}'s target"] = Cell(reached, records=one.judged)
        row["judged runs"] = Cell(statuses(shown), records=shown)
        row["tuning runs"] = Cell(statuses(one.tuning), records=one.tuning)
    return Table.of_rows(rows, "Results", _reading_of_results(task, marked, goal, timed))


def ablation(task: TaskResults) -> Table:
    """Return HVAdam as it grows from Adam; without rows if none of its steps was run."""
    levels = [level for level in task.levels if level.judged]
    if len(levels) < 2 or not set(ABLATION) & {level.name for level in levels}:
        levels = []
    rows = _compared(task, levels, levels[0])[1] if levels else []
    for row, level in zip(rows, levels, strict=True):
        chosen = describe_options(level.options)
        row["lr chosen"] = Cell(chosen, records=level.tuning or level.judged)
        row["what it has"] = Cell(_PARTS[level.name], records=level.judged)
    return Table.of_rows(rows, "Ablation", "What each part of the method adds, from Adam upwards.")


def units_of(task: TaskResults) -> Units:
    """Return how the values of a task are written."""
    everyone = task.contenders.values()
    values = [[statistics.final(run, task.metric) for run in one.judged] for one in everyone]
    return Units(task.metric, values, task.measured)


def value_cell(one: ContenderRuns, task: TaskResults, *, mark: bool = False) -> Cell:
    """Return the median over the judged runs; with its interval if there are several."""
    values = [statistics.final(run, task.metric) for run in one.judged]
    if not values:
        return Cell("no judged runs", records=one.rest)
    middle = median_of(one, task.metric)
    if not math.isfinite(middle):
        return Cell("diverged", records=one.judged)
    interval = statistics.bootstrap(values) if len(values) > 1 else None
    return Cell(units_of(task).spread(middle, interval), mark, records=one.judged)


def against_cell(
    one: ContenderRuns,
    reference: ContenderRuns | None,
    task: TaskResults,
    judged: Mapping[str, Judgement],
) -> Cell:
    """Return the paired difference to the reference, and what `judge_against` says of it."""
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
    told = difference(found, one, reference, task)
    text = f"{told}{',' if 'diverged' in told else ''} {found.word}"
    text += f" ({more_seeds(found.more_seeds)})" if found.more_seeds else ""
    return Cell(text, records=records, judgement=found)


def more_seeds(count: int) -> str:
    """Return how many more seeds would decide."""
    return "over 1,000 more seeds" if count > 1000 else counted(count, "more seed")


def difference(
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
    if not math.isfinite(low + high):
        return units.change(middle)
    settled = found.verdict in ("ahead", "behind")
    return units.difference(middle, statistics.Interval(low, high, 0.95), settled=settled)


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


def _compared(
    task: TaskResults, field: Sequence[ContenderRuns], reference: ContenderRuns | None
) -> tuple[set[str], list[dict[str, Cell | str]]]:
    """Return who is marked as best, and the first columns of a table of contenders."""
    units = units_of(task)
    judged = judge_against(task, reference.name) if reference else {}
    marked = leaders(task, reference.name, judged) if reference else set[str]()
    against = f"against {label(reference.name)}" if reference else "against"
    published = {
        one.name: {run.published for run in one.judged if run.published is not None}
        for one in field
    }
    rows: list[dict[str, Cell | str]] = []
    for one in field:
        row: dict[str, Cell | str] = {
            "": Cell.of(one.name),
            f"test {units.name}": value_cell(one, task, mark=one.name in marked),
            against: against_cell(one, reference, task, judged),
        }
        if any(published.values()):
            theirs = [f"{value * units.factor:.6g}" for value in sorted(published[one.name])]
            row["published"] = Cell(", ".join(theirs) or NOTHING, records=one.judged)
        rows.append({**row, "n": Cell(str(len(one.judged)), records=one.judged)})
    return marked, rows


def _pace(one: ContenderRuns) -> str:
    """Return the median time of a step."""
    ended = [run for run in one.timed if run.status in MEASURED and run.curve]
    paces = [run.train_seconds / run.curve[-1].step for run in ended if run.curve[-1].step]
    return seconds(median(paces)) if paces else NOTHING


def _reading_of_results(
    task: TaskResults, marked: set[str], goal: float | None, timed: bool
) -> str:
    """Return how to read the results, a line for each matter."""
    units, runs = units_of(task), [run for one in task.race for run in one.judged]
    noises = [noise for run in runs if (noise := run.test.get(f"{task.metric.name}_sd"))]
    untuned = [label(one.name) for one in task.race if one.judged and not one.tuned]
    reference = label(task.reference.name) if task.reference else ""
    judged = judge_against(task, task.reference.name) if task.reference else {}
    better = "less" if task.metric.goal == "min" else "more"
    lines = [f"Median over n seeds and its 95% bootstrap interval; {better} is better."]
    if marked:
        lines[0] += f" Marked: who is ahead of {reference}; if nobody is, it and all not behind it."
    elif judged:
        lines[0] += " None is marked as best: nobody is told apart."
    if judged:
        lines.append(f"Against {reference}: {reading_of_verdicts(task, len(judged))}")
    if units.measure == NOT_FID:
        lines.append(
            "The Fréchet distance is of features of this project, not of Inception: compare it "
            "within this task only, never with a published FID."
        )
    if noises:
        noise = float(f"{units.factor * median(noises):.2g}")
        lines.append(
            f"The measure's own noise is {noise:g}: its standard deviation over other samples of "
            "the same run, median over the judged runs. Do not read smaller differences."
        )
    if untuned:
        lines.append(
            f"Not tuned on separate runs: {', '.join(untuned)}; the options are those that did "
            "best on the validation split, among the runs shown."
        )
    if goal is not None:
        lines.append(
            f"{reference}'s target: {units.measure} {units.value(goal)} on the validation split, "
            f"its best by {100 * profiles.SHARE:g}% of a run, median over its runs. Steps to it: "
            "the first evaluation at which half of the runs had reached it."
        )
    if timed:
        lines.append(
            "Time in training, without evaluations, of the runs that had their machine to "
            "themselves; comparable only between runs of one machine."
        )
    return "\n".join(lines)
