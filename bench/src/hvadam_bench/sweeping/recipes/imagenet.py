"""ResNet50 on ImageNet: Table 1."""

from __future__ import annotations

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Contest, Entry

TASK = "imagenet_resnet50"
# SGD, SWA, Lookahead and Lookaround as in Lookaround's code, Adai as its authors advise. The paper
# took Adam's number from Adai's, whose code has no ImageNet: the rate is that of its CIFAR.
BASELINES = (
    Entry("sgd", {"lr": 0.1, "momentum": 0.9}),
    Entry("adam", {"lr": 1e-4}),
    Entry("adai", {"lr": 1.0}),
    Entry("swa", {"lr": 0.1}),
    Entry("lookahead", {"lr": 0.1, "k": 5, "alpha": 0.5}),
    Entry("lookaround", {"lr": 0.1, "heads": 3, "k": 5}),
)
# As in Lookaround's code, which counts epochs from 0 and averages after the one of number 70, once
# every turn of its three loaders; the rate goes to one of its own within ten epochs.
AVERAGING = {"start": 71 / 90, "every": 3, "swa_lr": 8e-4, "anneal": 10 / 90}
HVADAM = {"eps": 1e-8, "gamma": 0.5, "weight_decay_mode": "coupled"}
WHAT = "Table 1: top-1 accuracy of ResNet50 on ImageNet"

RECIPES = (
    Recipe(
        name="imagenet",
        reproduces=WHAT,
        # Three rates each: nobody here could pay for seven.
        studies=[
            Contest(TASK, [*BASELINES, Entry("hvadam", HVADAM)], scale="paper", trials=3, seeds=3)
        ],
    ),
    Recipe(
        name="imagenet_published",
        reproduces=f"{WHAT}, as published",
        studies=[
            Contest(
                task=TASK,
                entries=[
                    *(e.given(AVERAGING) if e.contender == "swa" else e for e in BASELINES),
                    Entry("hvadam", HVADAM, rates=(4e-3, 1e-3)),
                ],
                scale="paper",
                protocol="inherited",
                budget="published",
                seeds=1,
            )
        ],
    ),
)
