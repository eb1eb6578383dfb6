"""ViT-B/16 fine-tuned on CIFAR: Table 2."""

from __future__ import annotations

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Entry, Study

TASKS = ("cifar10_vit_b16", "cifar100_vit_b16")
# As in Lookaround's code, where the averaging methods average Adam.
ADAM = {"inner": "adam", "lr": 1e-3}
BASELINES = (
    Entry("adam", {"lr": 1e-3}),
    Entry("swa", ADAM),
    Entry("lookahead", {**ADAM, "k": 5, "alpha": 0.5}),
    Entry("lookaround", {**ADAM, "heads": 3, "k": 5}),
)
HVADAM = {"gamma": 1.0, "weight_decay_mode": "coupled"}
WHAT = "Table 2: test accuracy of ViT-B/16 on CIFAR-10 and CIFAR-100"


def _searched() -> Entry:
    return Entry("hvadam", HVADAM, {"eps": [1e-12, 1e-16]}, rates=(1e-3, 1e-4, 1e-5))


RECIPES = (
    Recipe(
        name="vit",
        reproduces=WHAT,
        # Fine-tuning wants smaller rates than any of the defaults: begin lower, for everyone.
        studies=[
            Study(
                task=task,
                entries=[
                    *(Entry(e.contender, {**e.options, "lr": 1e-4}) for e in BASELINES),
                    Entry("hvadam", {**HVADAM, "lr": 1e-4}),
                ],
                scale="paper",
                seeds=3,
            )
            for task in TASKS
        ],
    ),
    Recipe(
        name="vit_published",
        reproduces=f"{WHAT}, as published",
        studies=[
            Study(
                task, [*BASELINES, _searched()], "paper", "inherited", budget="published", seeds=1
            )
            for task in TASKS
        ],
    ),
)
