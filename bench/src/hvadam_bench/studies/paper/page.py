"""The page of the paper's tables, from the results alone."""

from __future__ import annotations

from pathlib import Path

from hvadam_bench.analysis.statistics import Interval, Metric
from hvadam_bench.pages.formatting import NOTHING, Units
from hvadam_bench.pages.rendering import render as render_template
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._study import Results
from hvadam_bench.studies.paper.measure import Panel, Paper

TEMPLATE = Path(__file__).with_name("page.md.j2")


def render(results: Results, out: Path) -> list[Path]:
    """Write the page, if anything was trained; return the files."""
    paper = results.get("paper")
    if not isinstance(paper, Paper) or not paper.panels:
        return []
    page = out / "docs" / "paper.md"
    tables = [(panel, tabulate(panel)) for panel in paper.panels]
    write_atomically(page, render_template(TEMPLATE, tables=tables).encode())
    return [page]


def tabulate(panel: Panel) -> Table:
    """Return ours versus published numbers, contender by contender."""
    metric = Metric(panel.metric, "max" if panel.goal == "max" else "min")
    units = Units(metric, [[row.median, *row.interval] for row in panel.rows])
    rows = [
        [
            Cell.of(row.contender),
            units.spread(row.median, Interval(*row.interval, 0.95) if row.seeds > 1 else None),
            NOTHING if row.published is None else f"{row.published * units.factor:.6g}",
            row.verdict or "reference",
            str(row.seeds),
            row.options,
        ]
        for row in panel.rows
    ]
    against = f"against {Cell.of(panel.reference).text}"
    return Table(["", f"test {units.name}", "published", against, "n", "lr chosen"], rows)
