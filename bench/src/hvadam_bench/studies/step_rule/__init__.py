"""Which step along the hidden vector should HVAdam take? Candidates, scored in stages."""

from hvadam_bench.studies._study import Study
from hvadam_bench.studies.step_rule import measure, page, plan

STUDY = Study(
    "step_rule",
    "Score candidates for the hidden step against Adam and NAdam, in stages.",
    plan.plan,
    measure.measure,
    page.render,
    {"step_rule": measure.StepRule},
    page.tables,
)
