"""SN-GAN on CIFAR-10: residual networks, told the classes, with a discriminator of slope one.

Protocol "inherited" has the published quirks. No image is held out; samples are held against the
test images 50 times, and the best of these is the result, so that it is chosen on the test images.
And the discriminator's blocks apply their first ReLU in place, so that their shortcuts pass on
positive values only. "standard" chooses on training images that are held out, tests once at the
end, and has the shortcuts of residual networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the two networks and their images."""
    from hvadam_bench.problems.sngan import SpectralProblem

    return SpectralProblem(settings, seed, protocol)


PAPER = {
    **{"data": "cifar10", "train_images": None, "size": 32, "latent": 128, "width": 64},
    **{"batch_size": 64, "iterations": 100_000, "critic_steps": 5},
    **{"evaluations": 50, "samples": 10_000, "features": "inception"},
}
SMALL = {**PAPER, "size": 16, "latent": 32, "evaluations": 10, "features": "small"}

TASK = Task(
    name="sngan",
    title="SN-GAN with residual networks",
    source="SN-GAN table",
    metric="frechet",
    goal="min",
    build=build,
    scales={
        "smoke": {
            **SMALL,
            **{"data": "digits", "train_images": 400, "width": 2},
            **{"batch_size": 20, "iterations": 6, "evaluations": 5, "samples": 100},
        },
        "laptop": {
            **SMALL,
            **{"train_images": 10_000, "width": 4},
            **{"batch_size": 32, "iterations": 200, "samples": 1_000},
        },
        "paper": PAPER,
    },
    data=("cifar10",),
    protocols=("standard", "inherited"),
    published={
        **{"hvadam": 12.72, "adabelief": 12.98, "radam": 13.10, "rmsprop": 12.86, "adam": 13.01},
        **{"fromage": 46.31, "yogi": 14.16, "sgd": 48.94, "adabound": 16.84},
    },
    published_from="They are the paper's Table 3, means over five runs: HVAdam's are its own, the "
    "others are from the re-run (Buvanesh & Panwar, 2021).",
)
