"""WGAN on CIFAR-10: a critic whose weights are kept in a box."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam.bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    from hvadam.bench.tasks._wasserstein import WassersteinProblem

    return WassersteinProblem(settings, seed, protocol, "clip")


PAPER = {
    **{"data": "cifar10", "train_images": None, "size": 64, "latent": 100, "width": 64},
    **{"batch_size": 64, "epochs": 100, "critic_steps": 5, "clip": 0.01},
    **{"samples": 64_000, "features": "inception"},
}
SMALL = {**PAPER, "size": 16, "latent": 32, "features": "small"}

TASK = Task(
    name="wgan",
    title="WGAN with DCGAN's networks",
    source="WGAN and WGAN-GP figures, and the table beside Padam",
    metric="frechet",
    goal="min",
    build=build,
    scales={
        "smoke": {
            **SMALL,
            **{"data": "digits", "train_images": 400, "width": 4},
            **{"batch_size": 40, "epochs": 2, "samples": 100},
        },
        "laptop": {
            **SMALL,
            **{"data": "fashion_mnist", "train_images": 20_000, "width": 16},
            **{"epochs": 8, "samples": 2_000},
        },
        "paper": PAPER,
    },
    data=("fashion_mnist", "cifar10"),
    protocols=("standard", "inherited"),
    # By the names of the recipes' entries. The paper made HVAdam's with the hidden step off.
    published={
        **{"adabelief": 82.85, "hvadam (no hidden step)": 65.48},
        **{"padam (p 1/2)": 106.38, "padam (p 1/4)": 422.62, "padam (p 1/8)": 330.44},
        **{"padam (p 1/16)": 357.26, "padam (p 0)": 459.01},
    },
)
