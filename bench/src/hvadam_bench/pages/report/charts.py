"""The numbers behind the charts; the page's script draws them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from hvadam_bench.analysis import profiles, statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.pages.cells import units_of
from hvadam_bench.pages.formatting import Units
from hvadam_bench.pages.palette import label

Chart = dict[str, Any]
# A metric that falls by this factor on its way is drawn on a logarithmic axis.
LOGARITHMIC = 20
# What lies before this share of the steps is above the chart at first: all start badly.
SETTLING = 0.2


def curves(task: TaskResults) -> Chart | None:
    """Return validation values over steps and, if timed, seconds: medians and quartiles."""
    units = units_of(task)
    timed = all(run.alone for one in task.contenders.values() for run in one.judged)
    traces = []
    for one in task.contenders.values():
        points = statistics.curves(one.judged, task.metric)
        if not points:
            continue
        traces.append(
            {
                "contender": one.name,
                "steps": [point.step for point in points],
                # Times count only if all had the machine to themselves.
                **({"seconds": [round(point.seconds, 4) for point in points]} if timed else {}),
                "y": _plain((point.summary.median for point in points), units),
                "low": _plain((point.summary.lower for point in points), units),
                "high": _plain((point.summary.upper for point in points), units),
                "n": len(one.judged),
            }
        )
    if not traces:
        return None
    log, window = _window(traces)
    return {
        "kind": "curves",
        "title": f"Validation {units.measure} in training",
        "note": "median and quartiles over seeds",
        "y": f"validation {units.name}",
        "log": log,
        "window": window,
        "traces": traces,
    }


def rates(task: TaskResults) -> Chart | None:
    """Return validation values over learning rates, of the tuning runs, or of all if none are."""
    units = units_of(task)
    traces = [trace for one in task.race if (trace := _rates_of(one, task, units))]
    if not any(len(trace["x"]) > 1 for trace in traces):
        return None
    values = [y for trace in traces for y in trace["y"] if y is not None]
    return {
        "kind": "rates",
        "title": "Sensitivity to the learning rate",
        "note": "large dot: chosen; ×: diverged or pruned",
        "y": f"validation {units.name}",
        "log": _is_log(values),
        "goal": task.metric.goal,
        "traces": traces,
    }


def profile(tasks: Sequence[TaskResults]) -> Chart | None:
    """Return how often each is at the target within τ times the steps of the quickest.

    Over the tasks with a target, for the contenders that were run on all of them: who was not
    run on a task has not lost there.
    """
    told = [(task, goal) for task in tasks if (goal := profiles.target_of(task)) is not None]
    if len(told) < 2:
        return None
    fields = [{one.name for one in task.race if one.judged} for task, _ in told]
    common = set.intersection(*fields)
    everywhere = [one.name for one in told[0][0].race if one.name in common]
    costs = {
        str(i): {
            name: profiles.middle_reached(task.contenders[name].judged, task.metric, goal).step
            for name in everywhere
        }
        for i, (task, goal) in enumerate(told)
    }
    found = profiles.profile(costs)
    furthest = max((tau for steps in found.values() for tau, _ in steps), default=1.0)
    traces = [
        {
            "contender": name,
            "x": [*(tau for tau, _ in found[name]), 1.05 * furthest],
            "y": [*(share for _, share in found[name]), found[name][-1][1]],
        }
        for name in everywhere
    ]
    left_out = sorted(set.union(*fields) - set(everywhere))
    return {
        "kind": "profile",
        "title": f"Performance profile over {len(told)} tasks",
        "tasks": [task.title for task, _ in told],
        "left_out": [label(name) for name in left_out],
        "traces": traces,
    }


def _rates_of(one: ContenderRuns, task: TaskResults, units: Units) -> Chart | None:
    runs = [run for run in one.tuning or one.judged if "lr" in run.config.options]
    if not runs:
        return None
    values = statistics.sensitivity(runs, task.metric).values
    return {
        "contender": one.name,
        "x": list(values),
        "y": _plain(values.values(), units),
        "chosen": one.options.get("lr"),
    }


def _plain(values: Iterable[float], units: Units) -> list[float | None]:
    """Return values as a chart can hold them: none where a run had come to nothing."""
    return [float(f"{v * units.factor:.6g}") if math.isfinite(v) else None for v in values]


def _is_log(values: Sequence[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) / min(values) > LOGARITHMIC


def _window(traces: Sequence[Chart]) -> tuple[bool, list[float] | None]:
    """Return whether the axis is logarithmic, and where to look first: where it is decided."""
    everything = [y for trace in traces for y in trace["y"] if y is not None]
    last = max(step for trace in traces for step in trace["steps"])
    settled = [
        y
        for trace in traces
        for step, y in zip(trace["steps"], trace["y"], strict=True)
        if y is not None and step >= SETTLING * last
    ]
    log = _is_log(everything)
    if not settled or len(set(settled)) < 2:
        return log, None
    low, high = min(settled), max(settled)
    if log:
        margin = (high / low) ** 0.06
        return log, [low / margin, high * margin]
    margin = 0.06 * (high - low)
    return log, [low - margin, high + margin]
