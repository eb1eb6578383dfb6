"""Do the paper's tables come out again? Its trainings, at its scale, versus its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hvadam_bench.pages.rendering import render as render_template
from hvadam_bench.pages.standings import ablation
from hvadam_bench.pages.standings import results as ended
from hvadam_bench.pages.tables import Table
from hvadam_bench.running.files import write_atomically
from hvadam_bench.running.records import Store
from hvadam_bench.studies._study import Place, Results, Study
from hvadam_bench.studies.paper import plan
from hvadam_bench.sweeping.costs import Costs
from hvadam_bench.sweeping.recipe import Recipe
from hvadam_bench.sweeping.sweep import Sweep


@dataclass(frozen=True)
class Paper:
    """The tables that have runs, a task each: what it reproduces, title, reading, heads and rows.

    They show ours versus published numbers as a report does; the numbers themselves are in the
    records that lie packed beside the result.
    """

    panels: tuple[Mapping[str, Any], ...]


def measure(plan: Sequence[Recipe], place: Place) -> dict[str, Paper]:
    """Run the sweeps, a task each, and return what the records say."""
    store = Store(place.runs / "paper", place.results / "paper")
    costs = Costs(store)
    sweeps = [
        (one.reproduces, Sweep([contest], store, one.name, costs))
        for one in plan
        for contest in one.studies
    ]
    place.sweep([sweep for _, sweep in sweeps])
    panels: list[dict[str, Any]] = []
    for what, sweep in sweeps:
        for task in (found.results for found in sweep.results() if found.results):
            levels = ablation(task)
            table = levels if levels.rows else ended(task)
            rows = [[cell.text for cell in row] for row in table.cells]
            shown = {"heads": list(table.heads), "rows": rows, "reading": table.reading}
            panels.append({"reproduces": what, "title": task.title, **shown})
    return {"paper": Paper(tuple(panels))}


def render(results: Results, out: Path) -> list[Path]:
    """Write the page, if anything was trained; return the files."""
    if "paper" not in results or not results["paper"].panels:
        return []
    page, template = out / "docs" / "paper.md", Path(__file__).with_name("page.md.j2")
    panels = [(one, Table(one["heads"], one["rows"])) for one in results["paper"].panels]
    write_atomically(page, render_template(template, panels=panels).encode())
    return [page]


STUDY = Study(
    "paper",
    "Train what the paper's tables show, at its scale, and write ours versus published numbers.",
    plan.plan,
    measure,
    render,
    {"paper": Paper},
)
