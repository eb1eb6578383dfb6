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
from pathlib import Path
from typing import Any

from hvadam._version import __version__
from hvadam_bench import tasks
from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import TaskResults, command, group, statuses
from hvadam_bench.contenders import OURS, rank
from hvadam_bench.pages.formatting import measure
from hvadam_bench.pages.markdown import escape, wrap
from hvadam_bench.pages.palette import look
from hvadam_bench.pages.rendering import asset, embed, render
from hvadam_bench.pages.report import charts
from hvadam_bench.pages.report.answers import Answer, answer_of, overall
from hvadam_bench.pages.standings import ablation, results
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.running.files import write_atomically
from hvadam_bench.running.records import Record, Store
from hvadam_bench.running.sources import current

ABOUT = (
    "HVAdam is Adam with a hidden vector: the direction that the steps of all parameters have in "
    "common, once what zigzags has cancelled. It takes a second step along that vector, the longer "
    "the better the vector agrees with the momentum."
)


def write(
    store: Store, out: Path, *, with_markdown: bool = False, paths: Path | None = None
) -> list[Path]:
    """Write the page and, if asked, its tables as Markdown beside it; return what was written.

    Records that cannot be read, or that other code than today's made, are left out and named.

    Args:
        store: Where the records are.
        out: The page.
        with_markdown: Also write the tables, to `out` with the ending ``.md``.
        paths: A picture of paths on a toy function to show before the tasks, if there is one.
    """
    pages = {out: render_html(store, paths.read_bytes() if paths else None)}
    if with_markdown:
        pages[out.with_suffix(".md")] = render_markdown(store)
    for path, text in pages.items():
        write_atomically(path, text.encode())
    return list(pages)


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
        """Return the scale, and what is not as usual."""
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
        """Return where the paper's numbers are from, or why there are none, if it has some."""
        runs = [run for one in self.task.contenders.values() for run in one.judged]
        sources = {run.published_from for run in runs if run.published is not None}
        task = tasks.get(self.task.task) if self.task.task in tasks.names() else None
        if sources:
            return (
                "Published numbers stand beside ours, whose protocol is theirs as far as that is "
                f"known. {' '.join(sorted(sources))}"
            )
        if not (task and task.published):
            return ""
        missing = "The paper's numbers are not shown: these runs"
        if self.task.scale != "paper":
            return f"{missing} are at {self.task.scale} scale, which is not its protocol."
        if self.task.settings:
            return f"{missing} change settings of its protocol."
        return "The paper has no number for this task under this protocol."

    @cached_property
    def tables(self) -> list[Table]:
        """Return the results, and the ablation where it was run."""
        return [one for one in (results(self.task), ablation(self.task)) if one.rows]

    @cached_property
    def charts(self) -> list[charts.Chart]:
        """Return curves over steps and over learning rates, as far as there are any."""
        return [one for one in (charts.curves(self.task), charts.rates(self.task)) if one]

    @cached_property
    def reach(self) -> float:
        """Return how far drawn intervals go; a few that are far out may end at the edge."""
        cells = [cell for table in self.tables for row in table.cells for cell in row]
        found = [cell.judgement.effect for cell in cells if cell.judgement]
        ends = [abs(end) for one in found for end in (one.estimate, *one.interval[:2])]
        finite = sorted(filter(math.isfinite, ends))
        return 1.2 * statistics.quantile(finite, 0.75) if any(finite) else 1.0

    def whisker(self, cell: Cell) -> dict[str, Any]:
        """Return an interval from 0 to 100, with 50 for no difference and better to the right."""
        assert cell.judgement is not None
        effect = cell.judgement.effect
        low, high, middle = (
            round(50 + 47 * max(-1.0, min(1.0, value / self.reach)), 1)
            for value in (*effect.interval[:2], effect.estimate)
        )
        return {"low": low, "middle": middle, "high": high, "verdict": cell.judgement.verdict}


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
    pictures = {one.id: made for one in sections if (made := charts.samples(one.task, store))}
    contenders = list(dict.fromkeys(name for one in sections for name in one.task.contenders))
    looks = {name: look(name) for name in contenders}
    drawn = {f"{one.id}-{chart['kind']}": chart for one in sections for chart in one.charts}
    content = {
        "runs": [_run(record, store) for record in records],
        "looks": {name: one._asdict() for name, one in looks.items()},
        "charts": drawn,
    }
    made_with = Counter(
        json.dumps(record.environment, indent=1, sort_keys=True) for record in records
    )
    return render(
        "report.html.j2",
        title=_title(sections),
        overall=overall(one.answer for one in sections),
        about=ABOUT if OURS in contenders else "",
        paths=base64.b64encode(paths).decode() if paths else "",
        sections=sections,
        places=lambda cell: sorted(places[run.config.key] for run in cell.records),
        samples=pictures,
        looks=looks,
        colours={name: place for place, name in enumerate(contenders)},
        environments=made_with.most_common(),
        statuses=statuses(records),
        total=len(records),
        left_out=left_out,
        folder=str(store.folder),
        version=__version__,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        content=embed(content),
        packed={name: embed(charts.packed(one)) for name, one in pictures.items()},
        plotly=_plotly() if drawn else "",
        style=asset("report.css"),
        script=asset("report.js") + asset("tables.js"),
    )


def render_markdown(store: Store) -> str:
    """Return verdicts and tables, without charts."""
    sections = sections_of(store, current(store.contents())[0])
    said = [f"# {escape(_title(sections))}", escape(overall(one.answer for one in sections))]
    for one in sections:
        said.append(f"## {escape(f'{one.task.title} ({one.conditions})')}")
        said += [escape(one.answer.told), one.published]
        for table in one.tables:
            said += [f"**{table.title}**", table.markdown()]
            said += map(escape, table.reading.splitlines())
    return wrap("\n\n".join(said)) + "\n"


def _title(sections: Sequence[Section]) -> str:
    if not sections:
        return "No records"
    return sections[0].task.title if len(sections) == 1 else f"{len(sections)} tasks compared"


def _order(record: Record) -> tuple[Any, ...]:
    """Return how a list of runs is read: who, first what was judged, by options and seed."""
    config = record.config
    lr = config.options.get("lr", 0)
    return (rank(config.entrant), record.role == "tuning", lr, config.seed, config.key)


def _run(record: Record, store: Store) -> Mapping[str, Any]:
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


@cache
def _plotly() -> str:
    """Return Plotly's script, compressed: the page unpacks it when a chart comes into view."""
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()
