"""The numbers behind the charts; the page's script draws them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from hvadam.bench import stats
from hvadam.bench.report.boards import Board, Entry
from hvadam.bench.report.looks import look
from hvadam.bench.report.numbers import Units
from hvadam.bench.report.tables import median_to_target, target_of, units_of

Chart = dict[str, Any]
# A metric that falls by this factor on its way is drawn on a logarithmic axis.
LOGARITHMIC = 20
# What lies before this share of the steps is above the chart at first: all start badly.
SETTLING = 0.2


def curves(board: Board) -> Chart | None:
    """The validation value over steps and seconds: median over the judged seeds, and quartiles."""
    units = units_of(board)
    traces = []
    for entry in board.entries.values():
        points = stats.curves(entry.judged, board.metric)
        if not points:
            continue
        traces.append(
            {
                "contender": entry.name,
                "steps": [point.step for point in points],
                "seconds": [round(point.seconds, 4) for point in points],
                "y": _plain((point.summary.median for point in points), units),
                "low": _plain((point.summary.lower for point in points), units),
                "high": _plain((point.summary.upper for point in points), units),
                "n": len(entry.judged),
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


def rates(board: Board) -> Chart | None:
    """The validation value over learning rates, from the tuning runs, or from all if none are."""
    units = units_of(board)
    traces = [trace for entry in board.race if (trace := _rates_of(entry, board, units))]
    if not any(len(trace["x"]) > 1 for trace in traces):
        return None
    values = [y for trace in traces for y in trace["y"] if y is not None]
    return {
        "kind": "rates",
        "title": "Sensitivity to the learning rate",
        "note": "large dot: chosen; ×: diverged or pruned",
        "y": f"validation {units.name}",
        "log": _is_log(values),
        "goal": board.metric.goal,
        "traces": traces,
    }


def profile(boards: Sequence[Board]) -> Chart | None:
    """How often each gets to where Adam ended within τ times the steps of the quickest.

    Over the tasks with such an end, for the contenders that were run on all of them: who was not
    run on a task has not lost there.
    """
    told = [(board, goal) for board in boards if (goal := target_of(board)) is not None]
    if len(told) < 2:
        return None
    fields = [{entry.name for entry in board.race if entry.judged} for board, _ in told]
    common = set.intersection(*fields)
    everywhere = [entry.name for entry in told[0][0].race if entry.name in common]
    costs = {
        str(i): {
            name: median_to_target(board.entries[name], board, goal, lambda reached: reached.step)
            for name in everywhere
        }
        for i, (board, goal) in enumerate(told)
    }
    found = stats.profile(costs)
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
        "tasks": [board.title for board, _ in told],
        "left_out": [look(name).label for name in left_out],
        "traces": traces,
    }


def _rates_of(entry: Entry, board: Board, units: Units) -> Chart | None:
    runs = [run for run in entry.tuning or entry.judged if "lr" in run.config.options]
    if not runs:
        return None
    values = stats.sensitivity(runs, board.metric).values
    return {
        "contender": entry.name,
        "x": list(values),
        "y": _plain(values.values(), units),
        "chosen": entry.options.get("lr"),
    }


def _plain(values: Iterable[float], units: Units) -> list[float | None]:
    """As JSON and a chart can hold them: no value where a run had come to nothing."""
    return [float(f"{v * units.factor:.6g}") if math.isfinite(v) else None for v in values]


def _is_log(values: Sequence[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) / min(values) > LOGARITHMIC


def _window(traces: Sequence[Chart]) -> tuple[bool, list[float] | None]:
    """Whether the axis is logarithmic, and where to look first: where it is decided."""
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
