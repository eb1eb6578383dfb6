"""SN-GAN on CIFAR-10: Table 3."""

from __future__ import annotations

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.recipes.gan import BASELINES, HVADAM
from hvadam_bench.sweeping.search import Contest, Entry

WHAT = "Table 3: Fréchet distance of SN-GAN on CIFAR-10"
# This code's Adam has an eps of its own, the rest is as for WGAN.
ENTRIES = tuple(e.given({"eps": 1e-6}) if e.contender == "adam" else e for e in BASELINES)
# Appendix F: ten settings for HVAdam, one for each of the others.
GAMMAS = [0.0, 0.001, 0.002, 0.1, 0.5]

RECIPES = (
    Recipe(
        name="sngan",
        reproduces=WHAT,
        studies=[
            Contest(
                task="sngan",
                entries=[*ENTRIES, Entry("hvadam", {**HVADAM, "lr": 2e-4})],
                scale="paper",
                trials=5,
                seeds=5,
            )
        ],
    ),
    Recipe(
        name="sngan_published",
        reproduces=f"{WHAT}, as published",
        studies=[
            Contest(
                task="sngan",
                entries=[*ENTRIES, Entry("hvadam", HVADAM, {"gamma": GAMMAS}, rates=(1e-2, 1e-3))],
                scale="paper",
                protocol="inherited",
                budget="published",
                seeds=5,
            )
        ],
    ),
)
