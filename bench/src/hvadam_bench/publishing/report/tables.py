"""The tables of a report: what each cell says, and which records it says it of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults, describe_options, statuses
from hvadam_bench.analysis.verdicts import (
    best_and_ties,
    median_to_target,
    target_of,
)
from hvadam_bench.publishing.cells import against_cell, units_of, value_cell
from hvadam_bench.publishing.formatting import NOT_FID, NOTHING, Units, seconds
from hvadam_bench.publishing.pages import say
from hvadam_bench.publishing.palette import ABLATION, OURS, label
from hvadam_bench.publishing.tables import Cell, Table
from hvadam_bench.running.records import MEASURED, Record

WORDS = "report.txt.j2"
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
    """Return who ended where, and how it compares with Adam."""
    units = units_of(task)
    tied = best_and_ties(task, task.race)
    published = any(run.published is not None for one in task.race for run in one.judged)
    rows: list[list[Cell]] = []
    for one in task.race:
        shown = [*one.judged, *one.rest]
        rows.append(
            [
                Cell.of(one.name),
                value_cell(one, task, units, mark=one.name in tied),
                against_cell(one, task.reference, task, units),
                *([_published(one, units)] if published else ()),
                Cell(str(len(one.judged)), records=one.judged),
                Cell(_chosen(one), records=one.tuning or one.judged),
                Cell(statuses(shown), records=shown),
                Cell(statuses(one.tuning), records=one.tuning),
            ]
        )
    heads = ["", f"test {units.name}", "against Adam", *(["paper"] if published else ())]
    heads += ["n", "lr chosen", "judged runs", "tuning runs"]
    return Table(heads, rows, "Results", _reading_of_results(task, units, marked=bool(tied)))


def speed(task: TaskResults) -> Table | None:
    """Return how soon each got to where Adam ended, and the time of a step, if any was timed."""
    goal, units = target_of(task), units_of(task)
    timed = any(one.timed for one in task.race)
    columns = {
        "time per step": timed,
        "steps to Adam's end": goal is not None,
        "time to Adam's end": timed and goal is not None,
        "runs that got there": goal is not None,
    }
    shown = [head for head, there in columns.items() if there]
    if not shown:
        return None
    rows: list[list[Cell]] = []
    for one in task.race:
        cells = {"time per step": Cell(_pace(one), records=one.timed)}
        if goal is not None:
            steps = median_to_target(one.judged, task.metric, goal, lambda reached: reached.step)
            time = median_to_target(one.timed, task.metric, goal, lambda reached: reached.seconds)
            there = [statistics.time_to_target(run, task.metric, goal) for run in one.judged]
            cells |= {
                "steps to Adam's end": Cell(
                    f"{steps:,.0f}" if math.isfinite(steps) else "not reached", records=one.judged
                ),
                "time to Adam's end": Cell(
                    _time(time) if one.timed else NOTHING, records=one.timed
                ),
                "runs that got there": Cell(
                    f"{len(there) - there.count(None)} of {len(there)}", records=one.judged
                ),
            }
        rows.append([Cell.of(one.name), *(cells[head] for head in shown)])
    end = "" if goal is None else f"{units.measure} {units.value(goal)}"
    return Table(["", *shown], rows, "Speed", say(WORDS, "reading_of_speed", end, timed))


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
    reading = say(WORDS, "reading_of_sensitivity")
    return Table(heads, rows, "Sensitivity to the learning rate", reading) if rows else None


def ablation(task: TaskResults) -> Table | None:
    """Return HVAdam as it grows from Adam, if at least one of its steps was run."""
    names = [name for name in (*ABLATION, OURS) if name in task.contenders]
    levels = [task.contenders[name] for name in names if task.contenders[name].judged]
    if len(levels) < 2 or not set(ABLATION) & {level.name for level in levels}:
        return None
    units, tied, first = units_of(task), best_and_ties(task, levels), levels[0]
    rows = [
        [
            Cell.of(level.name),
            Cell(_PARTS[level.name], records=level.judged),
            value_cell(level, task, units, mark=level.name in tied),
            against_cell(level, first, task, units),
            Cell(str(len(level.judged)), records=level.judged),
            Cell(describe_options(level.options), records=level.tuning or level.judged),
        ]
        for level in levels
    ]
    heads = ["", "what it has", f"test {units.name}", f"against {label(first.name)}"]
    heads += ["n", "lr chosen"]
    return Table(heads, rows, "Ablation", say(WORDS, "reading_of_ablation"))


def _cells(texts: Sequence[str], records: Sequence[Record]) -> list[Cell]:
    return [Cell(text, records=records) for text in texts]


def _chosen(one: ContenderRuns) -> str:
    """Return the options; a learning rate at the edge of those tried may not be the best."""
    return describe_options(one.options) + (" (edge of those tried)" if one.at_edge else "")


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


def _reading_of_results(task: TaskResults, units: Units, *, marked: bool) -> str:
    rivals = len(task.race) - 1
    runs = [run for one in task.race for run in one.judged]
    noises = [noise for run in runs if (noise := run.test.get(f"{task.metric.name}_sd"))]
    return say(
        WORDS,
        "reading_of_results",
        goal=task.metric.goal,
        marked=marked,
        level=f"{100 * (1 - 0.05 / rivals):.4g}" if task.reference and rivals else "",
        not_fid=units.measure == NOT_FID,
        noise=float(f"{units.factor * median(noises):.2g}") if noises else None,
        untuned=[label(one.name) for one in task.race if one.judged and not one.tuned],
    )
