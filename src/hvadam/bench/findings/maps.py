"""What the options should be: maps of the learning rate against another option, and rates by task.

A map has one run in a cell, so its noise is that of one run. Two cells are told apart where they
differ by more than `CLEAR` times √2 times the standard deviation over seeds on that task, where
HVAdam's own runs tell it, and by more than `SLACK` of the best where they do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hvadam import optimizers
from hvadam.bench import stats
from hvadam.bench.findings.measures import ADAMW, Content, number
from hvadam.bench.findings.reading import Reading
from hvadam.bench.report.looks import OURS

CLEAR = 2.0
SLACK = 0.01


def describe_map(reading: Reading, noise: float | None) -> Content:
    """One map: the validation value of each cell, and how good each value of the option can be."""
    board = reading.board
    assert board is not None, "only finished studies are described"
    [entry] = board.entries.values()
    [option] = reading.study.entries[0].axes
    metric = board.metric
    cells = {
        (run.config.options["lr"], run.config.options[option]): stats.final(run, metric, "valid")
        for run in entry.tuning
    }
    rates, values = (sorted({key[i] for key in cells}) for i in (0, 1))
    pick = min if metric.goal == "min" else max
    tops = {v: pick(cells[lr, v] for lr in rates) for v in values}
    best = pick(tops.values())
    margin = CLEAR * math.sqrt(2) * noise if noise is not None else SLACK * abs(best)
    return {
        "part": reading.part,
        "task": board.task,
        "title": board.title,
        "metric": metric.name,
        "goal": metric.goal,
        "option": option,
        "default": optimizers.get(entry.judged[0].config.contender).defaults[option],
        "rates": rates,
        "values": values,
        # None: diverged.
        "cells": [[_finite(cells[lr, value]) for lr in rates] for value in values],
        "margin": number(margin),
        "columns": [
            {
                "value": value,
                "best": _finite(tops[value]),
                "lr": pick(rates, key=lambda lr, value=value: cells[lr, value]),
                "short": number(shortfall(tops[value], best)),
                "tied": abs(tops[value] - best) <= margin,
            }
            for value in values
        ],
    }


def shortfall(value: float, best: float) -> float:
    """How far a value is from the best one, in percent of that; infinite for what diverged.

    Example:
        >>> round(shortfall(99.0, 100.0), 6), shortfall(math.inf, 5.0)
        (1.0, inf)
    """
    if not math.isfinite(value):
        return math.inf
    return 100 * abs(value - best) / abs(best) if best else math.nan


def settle(maps: Sequence[Content]) -> dict[str, Content]:
    """For each option: which values were best or tied on every task, and whether the default was.

    Returns:
        Option -> {"default", "tasks", "everywhere", "values": value -> {"short": by task, "worst",
        "tied": on how many tasks}}.
    """
    found: dict[str, Content] = {}
    for option in dict.fromkeys(one["option"] for one in maps):
        own = [one for one in maps if one["option"] == option]
        values: dict[str, Content] = {}
        for value in own[0]["values"]:
            columns = {
                one["task"]: column
                for one in own
                for column in one["columns"]
                if column["value"] == value
            }
            short = {task: column["short"] for task, column in columns.items()}
            values[f"{value:g}"] = {
                "short": short,
                "worst": number(max(math.inf if s is None else float(s) for s in short.values())),
                "tied": sum(column["tied"] for column in columns.values()),
            }
        found[option] = {
            "default": own[0]["default"],
            "tasks": [one["task"] for one in own],
            "everywhere": [v for v, one in values.items() if one["tied"] == len(own)],
            "values": values,
        }
    return found


def rates(boards: Sequence[Content]) -> Content:
    """HVAdam's best learning rate beside AdamW's on each task, and what other rates cost HVAdam."""
    rows: list[Content] = []
    for board in boards:
        ours, theirs = (board["entries"].get(name) for name in (OURS, ADAMW))
        if not ours or not theirs or "lr" not in ours["options"]:
            continue
        tried = {float(lr): value for lr, value in ours["rates"].items()}
        own, other = ours["options"]["lr"], theirs["options"]["lr"]
        top = tried.get(own)
        rows.append(
            {
                "task": board["task"],
                "title": board["title"],
                "hvadam": own,
                "adamw": other,
                "ratio": number(own / other),
                "at_edge": ours["at_edge"] or theirs["at_edge"],
                # None: not tried. "inf": diverged.
                "short_at_adamws": _cost(tried, other, top),
                "short": {f"{lr:g}": _cost(tried, lr, top) for lr in tried},
            }
        )
    ratios = [row["ratio"] for row in rows]
    grid = sorted({float(lr) for row in rows for lr in row["short"]})
    return {
        "tasks": rows,
        "median_ratio": number(math.exp(stats.median(map(math.log, ratios)))) if ratios else None,
        "lowest_ratio": min(ratios, default=None),
        "highest_ratio": max(ratios, default=None),
        "by_rate": {f"{lr:g}": _over_tasks(rows, f"{lr:g}") for lr in grid},
    }


def _over_tasks(rows: Sequence[Content], lr: str) -> Content:
    """What one rate costs, over the tasks on which it was tried."""
    costs = [float(row["short"][lr]) for row in rows if row["short"].get(lr) is not None]
    return {
        "tasks": len(costs),
        "best": sum(cost == 0 for cost in costs),
        "median": number(stats.median(costs)),
        "worst": number(max(costs)),
    }


def _cost(tried: Mapping[float, Any], lr: float, top: Any) -> float | str | None:
    if lr not in tried or not top:
        return None
    value = tried[lr]
    return number(shortfall(math.inf if value is None else value, top))


def _finite(value: float) -> float | str | None:
    return number(value) if math.isfinite(value) else None
