"""ResNet50 on ImageNet: Table 1."""

from __future__ import annotations

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Entry, Study

TASK = "imagenet_resnet50"
# SGD, SWA, Lookahead and Lookaround as in Lookaround's code, Adai as its authors advise. The paper
# took Adam's number from Adai's, which gives no settings for it.
BASELINES = (
    Entry("sgd", {"lr": 0.1, "momentum": 0.9}),
    Entry("adam", {"lr": 1e-3}),
    Entry("adai", {"lr": 1.0}),
    Entry("swa", {"lr": 0.1}),
    Entry("lookahead", {"lr": 0.1, "k": 5, "alpha": 0.5}),
    Entry("lookaround", {"lr": 0.1, "heads": 3, "k": 5}),
)
HVADAM = {"eps": 1e-8, "gamma": 0.5, "weight_decay_mode": "coupled"}
WHAT = "Table 1: top-1 accuracy of ResNet50 on ImageNet"

RECIPES = (
    Recipe(
        name="imagenet",
        reproduces=WHAT,
        # Three rates each: nobody here could pay for seven.
        studies=[
            Study(TASK, [*BASELINES, Entry("hvadam", HVADAM)], scale="paper", trials=3, seeds=3)
        ],
    ),
    Recipe(
        name="imagenet_published",
        reproduces=f"{WHAT}, as published",
        studies=[
            Study(
                task=TASK,
                entries=[*BASELINES, Entry("hvadam", HVADAM, rates=(4e-3, 1e-3))],
                scale="paper",
                protocol="inherited",
                budget="published",
                seeds=1,
            )
        ],
    ),
)
