"""Diffusion on CIFAR-10: the appendix's table of SGD, Adam and HVAdam."""

from __future__ import annotations

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Contest, Entry

RECIPES = (
    Recipe(
        # The paper gives no settings for it, so there is nothing to repeat as published.
        name="diffusion",
        reproduces="Table of the appendix: Fréchet distance of a diffusion model on CIFAR-10",
        studies=[
            Contest(
                task="diffusion",
                entries=[
                    Entry("sgd", {"lr": 1e-2}),
                    Entry("adam", {"lr": 1e-4}),
                    Entry("hvadam", {"lr": 1e-4}),
                ],
                scale="paper",
                trials=5,
                seeds=3,
            )
        ],
    ),
)
