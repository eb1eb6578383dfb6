"""What the page's script draws: the numbers behind the charts, and the samples of generators."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.analysis.judging import middle_run
from hvadam_bench.pages.formatting import Units
from hvadam_bench.pages.standings import units_of
from hvadam_bench.running.records import Store

Chart = dict[str, Any]
# A metric that falls by this factor on its way is drawn on a logarithmic axis.
LOGARITHMIC = 20
# What lies before this share of the steps is above the chart at first: all start badly.
SETTLING = 0.2
# Bytes of pictures on one task. Sixteen contenders with eleven grey ones of 128 pixels make 2 MB.
BUDGET = 6_000_000


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


def samples(task: TaskResults, store: Store) -> dict[str, Any] | None:
    """Return what generators made in training, if there are pictures of it.

    Each contender shows one judged run, the one in the middle by its test value: nobody shows their
    best. Pictures that would make the page too large stay where they are, beside the records.

    Returns:
        `measure`, what the values are of; the `steps` that are shown and how many are `left_out`;
        `pictures`, each once, in base64; and a figure for each contender with its `name`, `seed`,
        a `note` on how its run ended and, for each step, the place of its picture (`shown`) and
        its value (`values`).
    """
    judged = [one for one in task.contenders.values() if one.judged]
    runs = {one.name: middle_run(one.judged, task.metric) for one in judged}
    found = {name: own for name, run in runs.items() if (own := store.samples(run))}
    if not found:
        return None
    sizes: dict[int, int] = {}
    for own in found.values():
        for step, path in own.items():
            sizes[step] = sizes.get(step, 0) + path.stat().st_size
    steps, units = _that_fit(sizes, BUDGET), units_of(task)
    places: dict[str, int] = {}  # picture -> its place: untrained networks of one seed are alike
    figures = []
    for name, own in found.items():
        run = runs[name]
        ends = {point.step: point.valid.get(task.metric.name, math.nan) for point in run.curve}
        shown, values = [], []
        for step in steps:
            # A run that stopped early keeps its last picture.
            then = max((one for one in own if one <= step), default=min(own))
            picture = b64encode(own[then].read_bytes()).decode()
            shown.append(places.setdefault(picture, len(places)))
            value = units.value(ends.get(then, math.nan))
            values.append(value if then == step else f"{value} at step {then:,}")
        note = "" if run.status == "done" else f"{run.status}: {run.reason}"
        seed = run.config.seed
        figures.append(dict(name=name, seed=seed, note=note, shown=shown, values=values))
    return {
        "measure": units.measure,
        "steps": steps,
        "left_out": len(sizes) - len(steps),
        "pictures": list(places),
        "figures": figures,
    }


def packed(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a script needs to go to another step of samples; the last is in the page."""
    last = {figure["shown"][-1] for figure in one["figures"]}
    pictures = [None if i in last else coded for i, coded in enumerate(one["pictures"])]
    figures = {own["name"]: own for own in one["figures"]}
    return {"steps": one["steps"], "pictures": pictures, "figures": figures}


def _that_fit(sizes: Mapping[int, int], budget: int) -> list[int]:
    """Return as many steps as a budget has room for, evenly spread; the last one in any case."""
    every = sorted(sizes)
    for count in range(len(every), 1, -1):
        chosen = [every[round(i * (len(every) - 1) / (count - 1))] for i in range(count)]
        if sum(sizes[step] for step in chosen) <= budget:
            return chosen
    return every[-1:]


def _rates_of(one: ContenderRuns, task: TaskResults, units: Units) -> Chart | None:
    runs = [run for run in one.tuning or one.judged if "lr" in run.config.options]
    if not runs:
        return None
    values = statistics.by_rate(runs, task.metric)
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
    last = max(step for trace in traces for step in trace["steps"])
    points = [
        (step, y)
        for trace in traces
        for step, y in zip(trace["steps"], trace["y"], strict=True)
        if y is not None
    ]
    log = _is_log([y for _, y in points])
    settled = {y for step, y in points if step >= SETTLING * last}
    if len(settled) < 2:
        return log, None
    low, high = min(settled), max(settled)
    if log:
        margin = (high / low) ** 0.06
        return log, [low / margin, high * margin]
    margin = 0.06 * (high - low)
    return log, [low - margin, high + margin]
