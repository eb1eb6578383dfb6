"""A transformer that translates IWSLT14 from German to English; at home, captions of Multi30k.

The paper lists it among its experiments and gives no number. With the settings here AdaBelief's
authors have a BLEU of 35.02 for Adam and of 35.17 for AdaBelief.
"""

from hvadam_bench.problems.translation import LAPTOP, PAPER, SMOKE, build
from hvadam_bench.tasks._spec import Task

TASK = Task(
    name="iwslt14_transformer",
    title="Transformer on IWSLT14 German-English",
    source="named in the paper, without a result",
    metric="bleu",
    goal="max",
    build=build,
    scales={"smoke": SMOKE, "laptop": LAPTOP, "paper": PAPER},
    data=("iwslt14", "multi30k"),
)
