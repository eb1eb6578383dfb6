"""What the options should be: maps of the learning rate against another option, and rates by task.

A map has one run in a cell, so its noise is that of one run. Two cells are told apart where they
differ by more than `CLEAR` times √2 times the standard deviation over seeds on that task, where
HVAdam's own runs tell it, and by more than `SLACK` of the best where they do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from hvadam_bench import contenders
from hvadam_bench.analysis import statistics
from hvadam_bench.contenders import OURS
from hvadam_bench.studies.evidence.describe import ADAMW, finite, rounded, shortfall
from hvadam_bench.studies.evidence.parts import PartResults
from hvadam_bench.studies.evidence.result import (
    Column,
    Number,
    OptionEvidence,
    OptionMap,
    OptionValue,
    RateCost,
    Rates,
    TaskEvidence,
    TaskRates,
)

CLEAR = 2.0
SLACK = 0.01


def describe_map(reading: PartResults, noise: float | None) -> OptionMap:
    """Return the validation value of each cell, and how good each value of the option can be."""
    task = reading.results
    assert task is not None, "only finished studies are described"
    [runs] = task.contenders.values()
    [option] = reading.study.entries[0].axes
    metric = task.metric
    cells = {
        (run.config.options["lr"], run.config.options[option]): statistics.final(
            run, metric, "valid"
        )
        for run in runs.tuning
    }
    rates, values = (sorted({key[i] for key in cells}) for i in (0, 1))
    pick = min if metric.goal == "min" else max
    tops = {v: pick(cells[lr, v] for lr in rates) for v in values}
    best = pick(tops.values())
    margin = CLEAR * math.sqrt(2) * noise if noise is not None else SLACK * abs(best)
    columns = [
        Column(
            value=value,
            best=finite(tops[value]),
            lr=pick(rates, key=lambda lr, value=value: cells[lr, value]),
            short=rounded(shortfall(tops[value], best)),
            tied=abs(tops[value] - best) <= margin,
        )
        for value in values
    ]
    return OptionMap(
        part=reading.part,
        task=task.task,
        title=task.title,
        metric=metric.name,
        goal=metric.goal,
        option=option,
        default=contenders.get(runs.judged[0].config.contender).defaults[option],
        rates=tuple(rates),
        values=tuple(values),
        cells=tuple(tuple(finite(cells[lr, value]) for lr in rates) for value in values),
        margin=rounded(margin),
        columns=tuple(columns),
    )


def settle(maps: Sequence[OptionMap]) -> dict[str, OptionEvidence]:
    """Return for each option which values were best or tied on every task."""
    found: dict[str, OptionEvidence] = {}
    for option in dict.fromkeys(one.option for one in maps):
        own = [one for one in maps if one.option == option]
        values = {f"{value:g}": _over_maps(own, value) for value in own[0].values}
        found[option] = OptionEvidence(
            default=own[0].default,
            tasks=tuple(one.task for one in own),
            everywhere=tuple(name for name, one in values.items() if one.tied == len(own)),
            values=values,
        )
    return found


def rates(tasks: Sequence[TaskEvidence]) -> Rates:
    """Return HVAdam's best learning rates beside AdamW's, and what other rates cost HVAdam."""
    rows = [row for task in tasks if (row := _rates_on(task))]
    ratios = [row.ratio for row in rows]
    grid = sorted({float(lr) for row in rows for lr in row.short})
    middle = math.exp(statistics.median(map(math.log, ratios))) if ratios else None
    return Rates(
        tasks=tuple(rows),
        median_ratio=rounded(middle),
        lowest_ratio=min(ratios, default=None),
        highest_ratio=max(ratios, default=None),
        by_rate={f"{lr:g}": _over_tasks(rows, f"{lr:g}") for lr in grid},
    )


def _over_maps(maps: Sequence[OptionMap], value: float) -> OptionValue:
    columns = {one.task: c for one in maps for c in one.columns if c.value == value}
    short = {task: column.short for task, column in columns.items()}
    worst = max(math.inf if x is None else x for x in short.values())
    return OptionValue(short, rounded(worst), sum(column.tied for column in columns.values()))


def _rates_on(task: TaskEvidence) -> TaskRates | None:
    ours, theirs = (task.contenders.get(name) for name in (OURS, ADAMW))
    if not ours or not theirs or "lr" not in ours.options:
        return None
    tried = {float(lr): value for lr, value in ours.rates.items()}
    own, other = ours.options["lr"], theirs.options["lr"]
    return TaskRates(
        task=task.task,
        title=task.title,
        hvadam=own,
        adamw=other,
        ratio=float(f"{own / other:.6g}"),
        at_edge=ours.at_edge or theirs.at_edge,
        short_at_adamws=_cost(tried, other, tried.get(own)),
        short={f"{lr:g}": _cost(tried, lr, tried.get(own)) for lr in tried},
    )


def _over_tasks(rows: Sequence[TaskRates], lr: str) -> RateCost:
    """Return what one rate costs, over the tasks on which it was tried."""
    costs = [cost for row in rows if (cost := row.short.get(lr)) is not None]
    return RateCost(
        tasks=len(costs),
        best=sum(cost == 0 for cost in costs),
        median=rounded(statistics.median(costs)),
        worst=rounded(max(costs)),
    )


def _cost(tried: Mapping[float, Number], lr: float, top: Number) -> Number:
    if lr not in tried or not top:
        return None
    value = tried[lr]
    return rounded(shortfall(math.inf if value is None else value, top))
