"""A transformer that translates IWSLT14 from German to English; at home, captions of Multi30k."""

from hvadam_bench.problems.spec import Task
from hvadam_bench.problems.translation import LAPTOP, PAPER, SMOKE, build

# The paper gives no number of its own; these are AdaBelief's authors'.
TASK = Task(
    name="iwslt14_transformer",
    title="Transformer on IWSLT14 German-English",
    source="named in the paper, without a result",
    metric="bleu",
    goal="max",
    build=build,
    scales={"smoke": SMOKE, "laptop": LAPTOP, "paper": PAPER},
    data=("iwslt14", "multi30k"),
    published={"adam": 35.02, "adabelief": 35.17},
)
