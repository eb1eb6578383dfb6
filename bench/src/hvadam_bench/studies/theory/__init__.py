"""The paper's three theorems, measured: whether they hold, and what their bounds are worth."""

from hvadam_bench.studies._study import Study
from hvadam_bench.studies.theory import measure, page, plan
from hvadam_bench.studies.theory.result import Theory

STUDY = Study(
    "theory",
    "Measure the paper's theorems versus their bounds; some minutes.",
    plan.plan,
    measure.measure,
    page.render,
    {"theory": Theory},
    page.summarize,
)
