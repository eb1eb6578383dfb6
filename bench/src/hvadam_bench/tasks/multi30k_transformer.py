"""A small transformer that translates captions, judged by its perplexity; BLEU is told beside it.

BLEU of a few dozen sentences is a rough measure: the perplexity tells contenders apart sooner.
"""

from hvadam_bench.problems.translation import LAPTOP, SMOKE, build
from hvadam_bench.tasks._spec import Task

# No paper has it: "paper" is only a larger network and all the pairs.
_LARGE = {
    **LAPTOP,
    "train_pairs": None,
    "evaluated_pairs": None,
    "subwords": 8000,
    "width": 256,
    "inner": 512,
    "layers": 3,
    "batch_tokens": 4096,
    "epochs": 20,
    "warmup": 1000,
    "beam": 5,
    "longer": 50,
    "scored": None,
}

TASK = Task(
    name="multi30k_transformer",
    title="Small transformer on Multi30k German-English",
    source="extra",
    metric="perplexity",
    goal="min",
    build=build,
    scales={"smoke": SMOKE, "laptop": LAPTOP, "paper": _LARGE},
    data=("multi30k",),
)
