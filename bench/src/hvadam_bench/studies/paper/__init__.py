"""Do the paper's tables come out again? Its trainings, at its scale, versus its numbers."""

from hvadam_bench.studies._study import Study
from hvadam_bench.studies.paper import measure, page, plan

STUDY = Study(
    "paper",
    "Train what the paper's tables show, at its scale, and write ours versus published numbers.",
    plan.plan,
    measure.measure,
    page.render,
    {"paper": measure.Paper},
)
