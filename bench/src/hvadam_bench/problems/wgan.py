"""Wasserstein GANs on CIFAR-10: what the tasks with a clamped and a penalised critic share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from hvadam_bench.tasks._spec import Problem, Task

_PAPER = {
    **{"data": "cifar10", "train_images": None, "size": 64, "latent": 100, "width": 64},
    **{"batch_size": 64, "epochs": 100, "critic_steps": 5},
    **{"samples": 64_000, "features": "inception"},
}
_SMALL = {**_PAPER, "size": 16, "latent": 32, "features": "small"}
_SCALES: dict[str, dict[str, Any]] = {
    "smoke": {
        **_SMALL,
        **{"data": "digits", "train_images": 400, "width": 4},
        **{"batch_size": 40, "epochs": 2, "samples": 100},
    },
    "laptop": {
        **_SMALL,
        **{"data": "fashion_mnist", "train_images": 20_000, "width": 16},
        **{"epochs": 8, "samples": 2_000},
    },
    "paper": _PAPER,
}


def task(
    name: str,
    title: str,
    kind: Literal["clip", "penalty"],
    limit: float,
    published: Mapping[str, float],
) -> Task:
    """Return the task whose critic is kept from growing in one way, by so much."""

    def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
        from hvadam_bench.problems.wasserstein import WassersteinProblem

        return WassersteinProblem(settings, seed, protocol, kind)

    return Task(
        name=name,
        title=title,
        source="WGAN and WGAN-GP figures, and the table beside Padam",
        metric="frechet",
        goal="min",
        build=build,
        scales={scale: {**settings, kind: limit} for scale, settings in _SCALES.items()},
        data=("fashion_mnist", "cifar10"),
        protocols=("standard", "inherited"),
        published=published,
        published_from="They are the table of the paper's appendix G, means over five runs: "
        "HVAdam's, with the hidden step off, are its own, the others are from the re-run (Buvanesh "
        "& Panwar, 2021). Figure 6 has box plots and no numbers.",
    )
