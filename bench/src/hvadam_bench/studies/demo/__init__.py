"""Where does HVAdam pay, and where not? A first look, in a minute or two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hvadam_bench.pages import report
from hvadam_bench.pages.report.answers import answer_of
from hvadam_bench.running.records import Store
from hvadam_bench.studies._study import Place, Results, Study
from hvadam_bench.studies.demo import plan
from hvadam_bench.studies.demo.plan import Plan
from hvadam_bench.studies.valley.functions import Problem
from hvadam_bench.studies.valley.paths import draw
from hvadam_bench.studies.valley.result import PAPER_FOUR
from hvadam_bench.sweeping.sweep import Sweep

ANGLE = 30.0  # degrees between the valley and the axes


@dataclass(frozen=True)
class Demo:
    """Whom to use on each task, in words, and the name of the picture of the paths."""

    answers: Mapping[str, str]
    picture: str


def measure(plan: Plan, place: Place) -> dict[str, Demo]:
    """Draw the paths of four optimizers down a narrow valley, and train what is not recorded."""
    place.on_progress("paths down a narrow valley", 0.0)
    picture = draw(Problem("f2", (ANGLE,)), PAPER_FOUR, plan.steps, place.out)
    place.on_progress("", 1.0)
    sweep = Sweep(plan.contests, Store(place.out / "runs"), "demo")
    place.sweep([sweep])
    found = [one.results for one in sweep.results() if one.results]
    return {"demo": Demo({one.task: answer_of(one).told for one in found}, picture.name)}


def render(results: Results, out: Path) -> list[Path]:
    """Write the report, with the picture and all that the records say; return the files."""
    if "demo" not in results:
        return []
    picture = out / "docs" / "figures" / results["demo"].picture
    return report.write(Store(out / "runs"), out / "report.html", paths=picture)


STUDY = Study(
    "demo",
    "Show in a minute or two where HVAdam pays and where not, and write a report; resumes.",
    plan.plan,
    measure,
    render,
    {"demo": Demo},
    folder="demo",
)
