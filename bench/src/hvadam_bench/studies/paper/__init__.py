"""Do the paper's tables come out again? Its trainings, at its scale, versus its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hvadam_bench.pages.rendering import render as render_template
from hvadam_bench.pages.report.tables import ablation
from hvadam_bench.pages.report.tables import results as ended
from hvadam_bench.pages.tables import Table
from hvadam_bench.running.files import write_atomically
from hvadam_bench.running.records import Store
from hvadam_bench.studies._study import Place, Results, Study
from hvadam_bench.studies.paper import plan
from hvadam_bench.sweeping.costs import Costs
from hvadam_bench.sweeping.recipe import Recipe
from hvadam_bench.sweeping.sweep import Sweep


@dataclass(frozen=True)
class Panel:
    """One task of a table, ours versus published numbers, as a report shows them.

    The numbers themselves are in the records that lie packed beside the result.
    """

    reproduces: str
    title: str
    reading: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """Return the table for the page."""
        return Table(self.heads, self.rows).markdown()


@dataclass(frozen=True)
class Paper:
    """The panels that have runs."""

    panels: tuple[Panel, ...]


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
    panels: list[Panel] = []
    for what, sweep in sweeps:
        for task in (found.results for found in sweep.results() if found.results):
            table = ablation(task) or ended(task)
            rows = tuple(tuple(cell.text for cell in row) for row in table.cells)
            panels.append(Panel(what, task.title, table.reading, tuple(table.heads), rows))
    return {"paper": Paper(tuple(panels))}


def render(results: Results, out: Path) -> list[Path]:
    """Write the page, if anything was trained; return the files."""
    if "paper" not in results or not results["paper"].panels:
        return []
    page, template = out / "docs" / "paper.md", Path(__file__).with_name("page.md.j2")
    write_atomically(page, render_template(template, panels=results["paper"].panels).encode())
    return [page]


STUDY = Study(
    "paper",
    "Train what the paper's tables show, at its scale, and write ours versus published numbers.",
    plan.plan,
    measure,
    render,
    {"paper": Paper},
)
