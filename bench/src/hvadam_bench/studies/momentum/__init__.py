"""Does a momentum that follows the zigzag beat every fixed one? Candidates, in stages."""

from hvadam_bench.studies._study import Study
from hvadam_bench.studies.momentum import measure, page, plan

STUDY = Study(
    "momentum",
    "Score momenta that follow the zigzag of gradients against fixed ones, in stages.",
    plan.plan,
    measure.measure,
    page.render,
    {"momentum": measure.Momentum},
    page.tables,
)
