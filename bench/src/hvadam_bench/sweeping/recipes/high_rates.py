"""What the preconditioner does at rates above the best: a few optimizers over three decades.

They differ in what the momentum is divided by and in whether there is a hidden step. Nobody tunes:
every rate is run with the same seeds. The tasks are those with mini-batches that the step was
chosen on, whose runs take a second or two.
"""

from __future__ import annotations

from dataclasses import replace

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Entry, Study

TASKS = ("digits_normed_cnn", "pydoc_gru", "pydoc_transformer")
RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
ENTRANTS = (
    Entry("adam"),
    Entry("adabelief", {"eps": 1e-12}),  # HVAdam's
    Entry("hvadam"),
    Entry("hvadam", {"hidden_scale": 0.0}, variant="no hidden step"),
    Entry("hvadam1"),  # the hidden step over Adam's root
)


def at_rate(entry: Entry, lr: float) -> Entry:
    """Return an entry that has one learning rate, and is named after it."""
    words = ", ".join(filter(None, (entry.variant, f"lr {lr:g}")))
    return replace(entry, options={**entry.options, "lr": lr}, variant=words)


RECIPES = (
    Recipe(
        name="high_rates",
        reproduces="ours: what the preconditioner does at high learning rates",
        studies=[
            Study(task, [at_rate(entry, lr) for entry in ENTRANTS for lr in RATES], trials=1)
            for task in TASKS
        ],
    ),
)
