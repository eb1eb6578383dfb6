"""The demo: the finding itself on two small problems, and a report to look at."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from hvadam_bench.pages import report
from hvadam_bench.pages.sweeps import sweep_and_show
from hvadam_bench.running.records import Store
from hvadam_bench.studies.valley.functions import Problem
from hvadam_bench.studies.valley.paths import draw
from hvadam_bench.studies.valley.result import PAPER_FOUR
from hvadam_bench.sweeping import recipes
from hvadam_bench.sweeping.engines import make_engine
from hvadam_bench.sweeping.search import narrowed
from hvadam_bench.sweeping.sweep import Sweep
from hvadam_bench.terminal import say

ANGLE = 30.0  # degrees between the valley and the axes


def demonstrate(seeds: int | None, steps: int, out: Path, console: Console) -> bool:
    """Run what is not yet in ``out``, and write figures and the report there.

    Args:
        seeds: Of each winner; the recipe's if not given.
        steps: Of each path in the valley.
        out: A directory.
        console: Where progress and tables go.

    Returns:
        Whether everything got to its end.
    """
    console.print("The paths of four optimizers down a narrow valley that lies across the axes:")
    (out / "docs" / "figures").mkdir(parents=True, exist_ok=True)
    paths = draw(Problem("f2", (ANGLE,)), PAPER_FOUR, steps, out)
    say(f"wrote {paths}", console)

    console.print("A smooth problem and one with mini-batches, HVAdam and Adam tuned alike:")
    store = Store(out / "runs")
    studies = narrowed(recipes.get("demo").studies, seeds=seeds)
    sweep = Sweep(studies, store, "demo")
    finished = sweep_and_show(sweep, make_engine("local", store, None, None), console)
    for path in report.write(store, out / "report.html", paths=paths):
        console.print(f"The report: {path}", markup=False, highlight=False, soft_wrap=True)
    return finished
