"""ViT-B/16 fine-tuned on CIFAR: Table 2."""

from __future__ import annotations

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Contest, Entry

TASKS = ("cifar10_vit_b16", "cifar100_vit_b16")
# As in Lookaround's code, where the averaging methods average Adam.
ADAM = {"inner": "adam", "lr": 1e-3}
BASELINES = (
    Entry("adam", {"lr": 1e-3}),
    Entry("swa", ADAM),
    Entry("lookahead", {**ADAM, "k": 5, "alpha": 0.5}),
    Entry("lookaround", {**ADAM, "heads": 3, "k": 5}),
)
# As in Lookaround's code; see the recipe of ImageNet.
AVERAGING = {"start": 171 / 200, "every": 3, "swa_lr": 8e-4, "anneal": 10 / 200}
HVADAM = {"gamma": 1.0, "weight_decay_mode": "coupled"}
WHAT = "Table 2: test accuracy of ViT-B/16 on CIFAR-10 and CIFAR-100"


def _published(task: str) -> Contest:
    searched = Entry("hvadam", HVADAM, {"eps": [1e-12, 1e-16]}, rates=(1e-3, 1e-4, 1e-5))
    baselines = [e.given(AVERAGING) if e.contender == "swa" else e for e in BASELINES]
    return Contest(task, [*baselines, searched], "paper", "inherited", budget="published", seeds=1)


RECIPES = (
    Recipe(
        name="vit",
        reproduces=WHAT,
        # Fine-tuning wants smaller rates than any of the defaults: begin lower, for everyone.
        studies=[
            Contest(
                task=task,
                entries=[
                    *(entry.given({"lr": 1e-4}) for entry in BASELINES),
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
        studies=[_published(task) for task in TASKS],
    ),
)
