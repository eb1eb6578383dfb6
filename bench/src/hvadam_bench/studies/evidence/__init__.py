"""Where does HVAdam pay? On smooth problems, at doses of gradient noise, and with mini-batches."""

from hvadam_bench.studies._study import Study
from hvadam_bench.studies.evidence import measure, page, plan

STUDY = Study(
    "evidence",
    "Find out where HVAdam pays: the whole comparison, in hours; it goes on where records end.",
    plan.plan,
    measure.measure,
    page.render,
    dict.fromkeys(("evidence", "baselines", "evaluation-times"), dict),
    page.printed,
)
