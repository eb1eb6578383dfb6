"""The page: one HTML file with everything in it, made of tables, charts and words."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from typing import Any

from hvadam._version import __version__
from hvadam_bench import tasks
from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import TaskResults, command, group, statuses
from hvadam_bench.analysis.judging import judge_against
from hvadam_bench.pages.formatting import measure
from hvadam_bench.pages.palette import OURS, look, rank
from hvadam_bench.pages.rendering import asset, embed, render
from hvadam_bench.pages.report import charts
from hvadam_bench.pages.report.answers import Answer, answer_of, overall
from hvadam_bench.pages.report.samples import Samples, samples
from hvadam_bench.pages.report.tables import tables_of
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.running.records import Record, Store
from hvadam_bench.running.sources import current

ABOUT = (
    "HVAdam is Adam with a hidden vector: the direction that the steps of all parameters have in "
    "common, once what zigzags has cancelled. It takes a second step along that vector, the longer "
    "the better the vector agrees with the momentum."
)


@dataclass(frozen=True)
class Section:
    """One task as the page shows it; `number` is its place on it."""

    task: TaskResults
    number: int

    @property
    def id(self) -> str:
        """Return the section's anchor."""
        return f"task-{self.number}"

    @property
    def conditions(self) -> str:
        """Return the scale, and what else is not as usual."""
        said = [f"{self.task.scale} scale"]
        if self.task.protocol != "standard":
            said.append(f"{self.task.protocol} protocol")
        said += [f"{name}={json.dumps(value)}" for name, value in self.task.settings.items()]
        return ", ".join(said)

    @cached_property
    def answer(self) -> Answer:
        """Return whom to use."""
        return answer_of(self.task)

    @property
    def published(self) -> str:
        """Return where the paper's numbers beside ours are from, or why there are none.

        It is empty for a task without published numbers.
        """
        runs = [run for one in self.task.contenders.values() for run in one.judged]
        sources = {run.published_from for run in runs if run.published is not None}
        task = tasks.get(self.task.task) if self.task.task in tasks.names() else None
        if not sources and not (task and task.published):
            return ""
        if sources:
            return (
                "Published numbers stand beside ours, whose protocol is theirs as far as that is "
                f"known. {' '.join(sorted(sources))}"
            )
        missing = "The paper's numbers are not shown: these runs"
        if self.task.scale != "paper":
            return f"{missing} are at {self.task.scale} scale, which is not its protocol."
        if self.task.settings:
            return f"{missing} change settings of its protocol."
        return "The paper has no number for this task under this protocol."

    @cached_property
    def tables(self) -> list[Table]:
        """Return what the task measured, the results first."""
        return tables_of(self.task)

    @cached_property
    def charts(self) -> list[charts.Chart]:
        """Return curves over steps and over learning rates, as far as there are any."""
        found = (charts.curves(self.task), charts.rates(self.task))
        return [chart for chart in found if chart]


@dataclass(frozen=True)
class Links:
    """What a table's cells lead to: the records behind them, and intervals drawn to one scale."""

    places: Mapping[str, int]
    reach: float

    @classmethod
    def of(cls, section: Section, places: Mapping[str, int]) -> Links:
        """Return the links of a section; a few intervals that are far out may end at the edge."""
        cells = [cell for table in section.tables for row in table.cells for cell in row]
        found = [cell.judgement.effect for cell in cells if cell.judgement]
        ends = [abs(end) for one in found for end in (one.estimate, *one.interval[:2])]
        finite = sorted(filter(math.isfinite, ends))
        return cls(places, 1.2 * statistics.quantile(finite, 0.75) if any(finite) else 1.0)

    def runs(self, cell: Cell) -> str:
        """Return the places of a cell's records in the list of all."""
        return ",".join(map(str, sorted(self.places[run.config.key] for run in cell.records)))

    def whisker(self, cell: Cell) -> dict[str, Any] | None:
        """Return an interval from 0 to 100, with 50 for no difference and better to the right."""
        found = cell.judgement
        if found is None:
            return None

        def place(value: float) -> float:
            return round(50 + 47 * max(-1.0, min(1.0, value / self.reach)), 1)

        low, high, middle = map(place, (*found.effect.interval[:2], found.effect.estimate))
        return {"low": low, "middle": middle, "high": high, "verdict": found.verdict}


def sections_of(store: Store, records: Iterable[Record]) -> list[Section]:
    """Return the tasks of a store in the order of the page, each with its reference."""
    found = [
        replace(one, compared_with=store.reference(one.task, one.scale)) for one in group(records)
    ]
    return [Section(task, number) for number, task in enumerate(found)]


def render_html(store: Store, paths: bytes | None = None) -> str:
    """Return the whole page, from all records of a store.

    Args:
        store: Where the records are.
        paths: A PNG of paths on a toy function, to show before the tasks.
    """
    found, left_out = current(store.contents())
    records = sorted(found, key=_order)
    sections = sections_of(store, records)
    places = {record.config.key: place for place, record in enumerate(records)}
    pictures = {one.id: made for one in sections if (made := samples(one.task, store))}
    profiles = _profiles([one.task for one in sections])
    contenders = list(dict.fromkeys(name for one in sections for name in one.task.contenders))
    drawn = {f"{one.id}-{chart['kind']}": chart for one in sections for chart in one.charts}
    drawn |= {f"profile-{scale}": chart for scale, chart in profiles.items()}
    few = _few(sections)
    content = {
        "few": few,
        "runs": [_run(record, store) for record in records],
        "looks": {name: look(name)._asdict() for name in contenders},
        "charts": drawn,
    }
    return render(
        "report.html.j2",
        title=_title(sections),
        overall=overall(one.answer for one in sections),
        about=ABOUT if OURS in contenders else "",
        few=few,
        paths=base64.b64encode(paths).decode() if paths else "",
        sections=sections,
        links={one.id: Links.of(one, places) for one in sections},
        samples=pictures,
        profiles=profiles,
        looks={name: look(name) for name in contenders},
        colours={name: place for place, name in enumerate(contenders)},
        environments=_environments(records),
        statuses=statuses(records),
        total=len(records),
        left_out=left_out,
        folder=str(store.folder),
        version=__version__,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        content=embed(content),
        packed=_packed(pictures),
        plotly=_plotly() if drawn else "",
        style=asset("report.css"),
        script=asset("report.js") + asset("tables.js"),
    )


def render_markdown(store: Store) -> str:
    """Return verdicts and tables, without charts."""
    sections = sections_of(store, current(store.contents())[0])
    told = overall(one.answer for one in sections)
    return render("report.md.j2", title=_title(sections), sections=sections, overall=told)


def _title(sections: Sequence[Section]) -> str:
    if not sections:
        return "No records"
    return sections[0].task.title if len(sections) == 1 else f"{len(sections)} tasks compared"


def _few(sections: Sequence[Section]) -> list[str]:
    """Return the two that a reader compares first: HVAdam or the best, and the reference."""
    found = [one for one in sections if one.task.reference]
    if not found:
        return []
    task = found[0].task
    reference = task.reference.name if task.reference else ""
    judged = judge_against(task, reference)
    best = max(judged, key=lambda name: judged[name].effect.estimate, default=reference)
    return list(dict.fromkeys([OURS if OURS in judged else best, reference]))


def _packed(pictures: Mapping[str, Samples]) -> dict[str, Any]:
    return {name: embed(one.packed()) for name, one in pictures.items()}


def _profiles(told: Sequence[TaskResults]) -> dict[str, charts.Chart]:
    """Return one profile per scale that has several tasks."""
    scales = dict.fromkeys(task.scale for task in told)
    found = {s: charts.profile([task for task in told if task.scale == s]) for s in scales}
    return {scale: chart for scale, chart in found.items() if chart}


def _order(record: Record) -> tuple[Any, ...]:
    """Return how a list of runs is read: who, first what was judged, by options and seed."""
    config = record.config
    lr = config.options.get("lr", 0)
    return (rank(config.entrant), record.role == "tuning", lr, config.seed, config.key)


def _run(record: Record, store: Store) -> dict[str, Any]:
    """Return what the list of records behind a cell shows of one."""
    config = record.config
    value = record.test.get(record.metric)
    return {
        "contender": config.entrant,
        "seed": config.seed,
        "options": dict(config.options),
        "purpose": "tuning" if record.role == "tuning" else "judged",
        "status": record.status.replace("_", " "),
        "reason": record.reason,
        "metric": measure(record.metric, record.test),
        "test": None if value is None or not math.isfinite(value) else float(f"{value:.6g}"),
        "seconds": round(record.train_seconds, 2) if record.alone else None,
        "path": store.where(config),
        "command": command(config),
    }


def _environments(records: Iterable[Record]) -> list[tuple[int, list[tuple[str, str]]]]:
    """Return what the runs were made with, and how many of them."""
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


@cache
def _plotly() -> str:
    """Return Plotly's script, compressed: the page unpacks it when a chart comes into view."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()
