"""The page: one HTML file with everything in it, made of tables, charts and words."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hvadam._version import __version__
from hvadam.bench import stats
from hvadam.bench.records import Record, Store
from hvadam.bench.report import figures, tables, verdicts
from hvadam.bench.report.boards import Board, arrange, command, statuses
from hvadam.bench.report.found import Found
from hvadam.bench.report.looks import look, rank
from hvadam.bench.report.numbers import measure
from hvadam.bench.report.samples import samples
from hvadam.bench.report.tables import Cell, Table


def render(store: Store, found: Found | None = None) -> str:
    """The whole page, from all records of a store; with what they found, if somebody has judged."""
    records = sorted(store, key=_order)
    boards = arrange(records)
    places = {record.config.key: place for place, record in enumerate(records)}
    sections = [_section(board, f"board-{i}", places, store) for i, board in enumerate(boards)]
    profiles = _profiles(boards)
    contenders = list(dict.fromkeys(name for board in boards for name in board.entries))
    content = {
        "runs": [_run(record, store) for record in records],
        "looks": {name: look(name)._asdict() for name in contenders},
        "charts": {
            **{f"{s['id']}-{chart['kind']}": chart for s in sections for chart in s["charts"]},
            **{f"profile-{scale}": chart for scale, chart in profiles.items()},
        },
    }
    return _template().render(
        found=found,
        overall=verdicts.overall(section["verdict"] for section in sections),
        sections=sections,
        profiles=profiles,
        looks={name: look(name) for name in contenders},
        colours={name: place for place, name in enumerate(contenders)},
        environments=_environments(records),
        statuses=statuses(records),
        total=len(records),
        folder=str(store.folder),
        version=__version__,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        content=_embed(content),
        packed={s["id"]: _embed(s["samples"].packed()) for s in sections if s["samples"]},
        plotly=_plotly() if content["charts"] else "",
        style=Markup(_own("style.css")),
        script=Markup(_own("script.js")),
    )


def board_tables(board: Board) -> list[Table]:
    """The tables of a board that have something to say, the results first."""
    found = [
        tables.results(board),
        tables.speed(board),
        tables.sensitivity(board),
        tables.ablation(board),
    ]
    return [table for table in found if table is not None]


def heading(board: Board) -> str:
    """The task, and under which conditions if they are not the usual ones."""
    said = [f"{board.scale} scale"]
    if board.protocol != "standard":
        said.append(f"{board.protocol} protocol")
    said += [f"{name}={json.dumps(value)}" for name, value in board.settings.items()]
    return ", ".join(said)


def on_published(board: Board) -> str:
    """Whether the paper's numbers stand beside ours, and why not."""
    if any(run.published is not None for e in board.entries.values() for run in e.judged):
        return "The paper's numbers stand beside ours: the protocol is the same."
    if board.scale != "paper":
        return (
            f"The paper's numbers are not shown: these runs are at {board.scale} scale, which is "
            "not its protocol."
        )
    if board.settings:
        return "The paper's numbers are not shown: these runs change settings of its protocol."
    return "The paper has no number for this task under this protocol."


def _section(board: Board, name: str, places: Mapping[str, int], store: Store) -> dict[str, Any]:
    """What the template needs of a board."""
    charts = [chart for chart in (figures.curves(board), figures.rates(board)) if chart]
    found = board_tables(board)
    reach = _reach(found)
    return {
        "id": name,
        "board": board,
        "conditions": heading(board),
        "verdict": verdicts.verdict(board),
        "published": on_published(board),
        "tables": [_shown(table, places, reach, board.metric) for table in found],
        "charts": charts,
        "samples": samples(board, store),
    }


def _shown(
    table: Table, places: Mapping[str, int], reach: float, metric: stats.Metric
) -> dict[str, Any]:
    """A table with each cell's records by their places, and its interval as a drawing."""

    def cell(one: Cell) -> dict[str, Any]:
        runs = ",".join(map(str, sorted(places[run.config.key] for run in one.records)))
        drawn = _whisker(one.comparison, reach, metric) if one.comparison else None
        return {"text": one.text, "mark": one.mark, "runs": runs, "whisker": drawn}

    return {
        "title": table.title,
        "heads": table.heads,
        "reading": table.reading,
        "rows": [
            {"contender": name, "look": look(name), "cells": [cell(one) for one in cells]}
            for name, cells in table.rows
        ],
    }


def _reach(found: Iterable[Table]) -> float:
    """How far the drawn intervals go: a few that are far out may end at the edge."""
    comparisons = [
        c.comparison for t in found for _, cells in t.rows for c in cells if c.comparison
    ]
    ends = [abs(end) for one in comparisons for end in one.interval[:2] if math.isfinite(end)]
    return 1.2 * stats.quantile(sorted(ends), 0.75) if any(ends) else 1.0


def _whisker(found: stats.Comparison, reach: float, metric: stats.Metric) -> dict[str, Any]:
    """From 0 to 100, with 50 for no difference and better to the right."""
    sign = 1 if metric.goal == "max" else -1

    def place(value: float) -> float:
        return round(50 + 47 * max(-1.0, min(1.0, sign * value / reach)), 1)

    ends = sorted((place(found.interval.low), place(found.interval.high)))
    return {
        "low": ends[0],
        "middle": place(found.difference),
        "high": ends[1],
        "standing": found.verdict if found.settled else "tie",
    }


def _profiles(boards: Sequence[Board]) -> dict[str, figures.Chart]:
    """One per scale that has several tasks."""
    scales = dict.fromkeys(board.scale for board in boards)
    found = {s: figures.profile([board for board in boards if board.scale == s]) for s in scales}
    return {scale: chart for scale, chart in found.items() if chart}


def _order(record: Record) -> tuple[Any, ...]:
    """How a list of runs is read: who, first what was judged, by options and seed."""
    config = record.config
    lr = config.options.get("lr", 0)
    return (rank(config.entrant), stats.is_tuning(record), lr, config.seed, config.key)


def _run(record: Record, store: Store) -> dict[str, Any]:
    """What the list of records behind a cell shows of one."""
    config = record.config
    value = record.test.get(record.metric)
    return {
        "contender": config.entrant,
        "seed": config.seed,
        "options": dict(config.options),
        "purpose": "tuning" if stats.is_tuning(record) else "judged",
        "status": record.status.replace("_", " "),
        "reason": record.reason,
        "metric": measure(record.metric, record.test),
        "test": None if value is None or not math.isfinite(value) else float(f"{value:.6g}"),
        "seconds": round(record.train_seconds, 2),
        "path": str(store.path(config).relative_to(store.folder)),
        "command": command(config),
    }


def _environments(records: Iterable[Record]) -> list[tuple[int, list[tuple[str, str]]]]:
    """What the runs were made with, and how many of them."""
    counts = Counter(json.dumps(record.environment, sort_keys=True) for record in records)
    return [(n, list(_flat(json.loads(text)))) for text, n in counts.most_common()]


def _flat(plain: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for name, value in plain.items():
        if isinstance(value, Mapping):
            yield name, ", ".join(f"{key} {inner}" for key, inner in value.items())
        elif isinstance(value, list):
            yield name, ", ".join(map(str, value))
        else:
            yield name, str(value)


def _template() -> Any:
    environment = Environment(
        loader=PackageLoader("hvadam.bench.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")


def _embed(content: Any) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


@cache
def _plotly() -> str:
    """Plotly's script, compressed: the page unpacks it when a chart comes into view."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()


def _own(name: str) -> str:
    return files("hvadam.bench.report").joinpath(name).read_text(encoding="utf-8")
