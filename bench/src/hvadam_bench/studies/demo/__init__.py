"""Where does HVAdam pay, and where not? A first look, in a minute or two."""

from hvadam_bench.studies._study import Study
from hvadam_bench.studies.demo import measure, page, plan

STUDY = Study(
    "demo",
    "Show in a minute or two where HVAdam pays and where not, and write a report; resumes.",
    plan.plan,
    measure.measure,
    page.render,
    {"demo": measure.Demo},
    folder="demo",
)
