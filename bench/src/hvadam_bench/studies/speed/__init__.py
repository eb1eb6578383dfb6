"""The speed study: a step on one thread, on several, in JAX and in training, and the runner."""

from hvadam_bench.studies._study import Study
from hvadam_bench.studies.speed import measure, page, plan

STUDY = Study(
    "speed",
    "Time a step of HVAdam versus Adam and AdaBelief, print tables, draw charts.",
    plan.plan,
    measure.measure,
    page.render,
    dict.fromkeys(measure.MODULES, dict),
    page.tabulate,
)
