"""The tables of a report: what each cell says, and which records it says it of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from hvadam_bench.analysis import profiles, statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults, describe_options, statuses
from hvadam_bench.analysis.judging import judge_against, leaders
from hvadam_bench.pages.cells import against_cell, reading_of_verdicts, units_of, value_cell
from hvadam_bench.pages.formatting import NOT_FID, NOTHING, Units, seconds
from hvadam_bench.pages.palette import ABLATION, label
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.running.records import MEASURED, Record

_PARTS = {
    "hvadam0": "Adam, by HVAdam's kernels",
    "hvadam1": "+ the step along the hidden vector",
    "hvadam2": "+ the preconditioner from it",
    "hvadam": "+ restarts: HVAdam",
}


def tables_of(task: TaskResults) -> list[Table]:
    """Return the tables of a task that have something to say, the results first."""
    found = [results(task), speed(task), sensitivity(task), ablation(task)]
    return [table for table in found if table is not None]


def results(task: TaskResults) -> Table:
    """Return who ended where, and how it compares with the reference."""
    units, reference = units_of(task), task.reference
    judged = judge_against(task, reference.name) if reference else {}
    marked = leaders(task, reference.name, judged) if reference else set[str]()
    published = _has_published(task.race)
    rows: list[list[Cell]] = []
    for one in task.race:
        shown = [*one.judged, *one.rest]
        rows.append(
            [
                Cell.of(one.name),
                value_cell(one, task, units, mark=one.name in marked),
                against_cell(one, reference, task, judged),
                *([_published(one, units)] if published else ()),
                Cell(str(len(one.judged)), records=one.judged),
                Cell(_chosen(one), records=one.tuning or one.judged),
                Cell(statuses(shown), records=shown),
                Cell(statuses(one.tuning), records=one.tuning),
            ]
        )
    beside = f"against {label(reference.name)}" if reference else "against"
    heads = ["", f"test {units.name}", beside, *(["published"] if published else ())]
    heads += ["n", "lr chosen", "judged runs", "tuning runs"]
    told = reading_of_verdicts(task, len(judged)) if judged else ""
    return Table(heads, rows, "Results", _reading_of_results(task, units, bool(marked), told))


def speed(task: TaskResults) -> Table | None:
    """Return how soon each got to the reference's target, and the time of a step, if timed."""
    goal, units = profiles.target_of(task), units_of(task)
    timed = any(one.timed for one in task.race)
    end = f"{label(task.reference.name)}'s target" if task.reference else ""
    pace, steps_to, time_to = "time per step", f"steps to {end}", f"time to {end}"
    there_too = "runs that got there"
    columns = {
        pace: timed,
        steps_to: goal is not None,
        time_to: timed and goal is not None,
        there_too: goal is not None,
    }
    shown = [head for head, there in columns.items() if there]
    if not shown:
        return None
    rows: list[list[Cell]] = []
    for one in task.race:
        cells = {pace: Cell(_pace(one), records=one.timed)}
        if goal is not None:
            steps, _ = profiles.middle_reached(one.judged, task.metric, goal)
            _, time = profiles.middle_reached(one.timed, task.metric, goal)
            there = [statistics.time_to_target(run, task.metric, goal) for run in one.judged]
            reached = f"{len(there) - there.count(None)} of {len(there)}"
            soon = f"{steps:,.0f}" if math.isfinite(steps) else "not reached"
            cells |= {
                steps_to: Cell(soon, records=one.judged),
                time_to: Cell(_time(time) if one.timed else NOTHING, records=one.timed),
                there_too: Cell(reached, records=one.judged),
            }
        rows.append([Cell.of(one.name), *(cells[head] for head in shown)])
    at = "" if goal is None else f"{units.measure} {units.value(goal)}"
    reading = (
        "Time in training, without evaluations, of the runs that had their machine to themselves; "
        "comparable only between runs of one machine."
        if timed
        else "No times: the runs shared their machine, or do not say that they did not."
    )
    if at:
        reading += (
            f" {end}: {at} on the validation split, its best by {100 * profiles.SHARE:g}% of a "
            "run, median over its runs. First evaluation at which half of the runs had reached it."
        )
    return Table(["", *shown], rows, "Speed", reading)


def sensitivity(task: TaskResults) -> Table | None:
    """Return how wide a range of learning rates does, for those that were tuned."""
    rows: list[list[Cell]] = []
    for one in task.race:
        tuning = [run for run in one.tuning if "lr" in run.config.options]
        if not tuning:
            continue
        found = statistics.sensitivity(tuning, task.metric)
        spread = f"{found.low:g} to {found.high:g}" if found.high > found.low else f"{found.low:g}"
        cells = [f"{found.best:g}", spread, f"{found.decades:.1f}", str(len(found.values))]
        rows.append([Cell.of(one.name), *_cells(cells, tuning)])
    heads = ["", "best lr", "lrs within 1%", "decades", "lrs tried"]
    reading = (
        "The range around the best learning rate in which the validation value stays within 1% of "
        "the best, among the rates tried; wider is easier to tune."
    )
    return Table(heads, rows, "Sensitivity to the learning rate", reading) if rows else None


def ablation(task: TaskResults) -> Table | None:
    """Return HVAdam as it grows from Adam, if at least one of its steps was run."""
    levels = [level for level in task.levels if level.judged]
    if len(levels) < 2 or not set(ABLATION) & {level.name for level in levels}:
        return None
    units, first = units_of(task), levels[0]
    judged = judge_against(task, first.name)
    marked = leaders(task, first.name, judged)
    published = _has_published(levels)
    rows = [
        [
            Cell.of(level.name),
            Cell(_PARTS[level.name], records=level.judged),
            value_cell(level, task, units, mark=level.name in marked),
            against_cell(level, first, task, judged),
            *([_published(level, units)] if published else ()),
            Cell(str(len(level.judged)), records=level.judged),
            Cell(describe_options(level.options), records=level.tuning or level.judged),
        ]
        for level in levels
    ]
    heads = ["", "what it has", f"test {units.name}", f"against {label(first.name)}"]
    heads += [*(["published"] if published else ()), "n", "lr chosen"]
    return Table(heads, rows, "Ablation", "What each part of the method adds, from Adam upwards.")


def _cells(texts: Sequence[str], records: Sequence[Record]) -> list[Cell]:
    return [Cell(text, records=records) for text in texts]


def _chosen(one: ContenderRuns) -> str:
    """Return the options; a learning rate at the edge of those tried may not be the best."""
    return describe_options(one.options) + (" (edge of those tried)" if one.at_edge else "")


def _has_published(contenders: Sequence[ContenderRuns]) -> bool:
    return any(run.published is not None for one in contenders for run in one.judged)


def _published(one: ContenderRuns, units: Units) -> Cell:
    found = {run.published for run in one.judged if run.published is not None}
    shown = [f"{value * units.factor:.6g}" for value in sorted(found)]
    return Cell(", ".join(shown) or NOTHING, records=one.judged)


def _pace(one: ContenderRuns) -> str:
    """Return the median time of a step."""
    paces = [run.train_seconds / run.curve[-1].step for run in one.timed if _has_steps(run)]
    return seconds(median(paces)) if paces else NOTHING


def _time(value: float) -> str:
    return seconds(value) if math.isfinite(value) else "not reached"


def _has_steps(run: Record) -> bool:
    return run.status in MEASURED and bool(run.curve) and run.curve[-1].step > 0


def _reading_of_results(task: TaskResults, units: Units, marked: bool, verdicts: str) -> str:
    runs = [run for one in task.race for run in one.judged]
    noises = [noise for run in runs if (noise := run.test.get(f"{task.metric.name}_sd"))]
    untuned = [label(one.name) for one in task.race if one.judged and not one.tuned]
    reference = label(task.reference.name) if task.reference else ""
    better = "less" if task.metric.goal == "min" else "more"
    first = f"Median over n seeds and its 95% bootstrap interval; {better} is better."
    if marked:
        first += f" Marked: who is ahead of {reference}; if nobody is, it and all not behind it."
    elif verdicts:
        first += " None is marked as best: nobody is told apart."
    limits: list[str] = []
    if units.measure == NOT_FID:
        limits.append(
            "The Fréchet distance is of features of this project, not of Inception: compare it "
            "within this task only, never with a published FID."
        )
    if noises:
        noise = float(f"{units.factor * median(noises):.2g}")
        limits.append(
            f"The measure's own noise is {noise:g}: its standard deviation over other samples of "
            "the same run, median over the judged runs. Do not read smaller differences."
        )
    lines = [first, f"Against {reference}: {verdicts}" if verdicts else "", " ".join(limits)]
    if untuned:
        lines.append(
            f"Not tuned on separate runs: {', '.join(untuned)}; the options are those that did "
            "best on the validation split, among the runs shown."
        )
    return "\n".join(filter(None, lines))
