"""Low-bit state and the late step beside the exact float32 one, on the digits."""

from __future__ import annotations

from typing import Any

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Entry, Study

LR = 1e-3
# The one that the others are compared with has no name of its own: it is HVAdam by default.
VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    "bfloat16 state": {"state_dtype": "bfloat16"},
    "int8 state": {"state_dtype": "int8"},
    "late": {"hidden_step": "late"},
    "late, bfloat16 state": {"hidden_step": "late", "state_dtype": "bfloat16"},
}
ENTRIES = tuple(
    Entry("hvadam", {"lr": LR, **options}, variant=name) for name, options in VARIANTS.items()
)
TASKS = {"digits_mlp": {"epochs": 40}, "digits_cnn": {"epochs": 30}}  # a thousand steps and more

RECIPES = (
    Recipe(
        name="variants",
        reproduces="ours: low-bit state and the late step beside the exact one, paired seeds",
        # Nobody tunes: the question is what a variant changes, all else being equal.
        studies=[
            Study(task, ENTRIES, settings=own, trials=1, seeds=10, reference="hvadam")
            for task, own in TASKS.items()
        ],
    ),
)
