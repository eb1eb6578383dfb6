"""The way down a valley that lies across the axes: which optimizers find it, and at what cost."""

from hvadam_bench.studies._study import Study
from hvadam_bench.studies.valley import measure, page
from hvadam_bench.studies.valley.result import Comparison, Conditioning

STUDY = Study(
    "valley",
    "Race optimizers on the paper's toy functions from hundreds of starts; resumes.",
    measure.plan,
    measure.measure,
    page.render,
    {"valley": Comparison, "condition": Conditioning},
)
