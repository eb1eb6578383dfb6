"""What does HVAdam cost on many ranks? Memory and communication, by formulas, and checked."""

from hvadam_bench.studies._study import Study
from hvadam_bench.studies.scaling import measure, page, plan

STUDY = Study(
    "scaling",
    "Work out what HVAdam costs on many ranks, and check it with a fake process group.",
    plan.plan,
    measure.measure,
    page.render,
    {"scaling": measure.Scaling},
)
