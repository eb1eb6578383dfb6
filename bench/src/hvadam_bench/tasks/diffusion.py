"""Improved diffusion on CIFAR-10: a U-Net that takes noise from images, with learnt variances.

The paper's FIDs come without the learning rate, the number of iterations, of samples and of
sampling steps, and whether weights were averaged. "paper" scale is the code that the paper names,
as that was released: 500,000 iterations with AdamW at 1e-4 and no decay, samples of the average,
by all 4,000 steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hvadam_bench.tasks._spec import Problem, Task


def build(settings: Mapping[str, Any], seed: int, protocol: str) -> Problem:
    """Build the U-Net, its average and its images."""
    from hvadam_bench.problems.diffusion import DiffusionProblem

    return DiffusionProblem(settings, seed, protocol)


PAPER = {
    **{"data": "cifar10", "train_images": None, "size": 32, "width": 128},
    **{"multipliers": (1, 2, 2, 2), "blocks": 3, "attention": (16, 8), "heads": 4},
    **{"dropout": 0.3, "batch_size": 128, "iterations": 500_000, "ema": 0.9999},
    **{"diffusion_steps": 4_000, "sampler": "ancestral", "sampling_steps": 4_000},
    # Samples cost a fifth of the training each time, hence few points.
    **{"evaluations": 2, "samples": 10_000, "features": "inception"},
}
# Steps are what a run of seconds lacks most, so they are small, and so is the network.
SMALL = {
    **PAPER,
    **{"width": 8, "blocks": 1, "attention": (4,), "heads": 2, "batch_size": 16},
    **{"diffusion_steps": 1_000, "evaluations": 3, "features": "small"},
}

TASK = Task(
    name="diffusion",
    title="Improved diffusion with a U-Net",
    source="the table of diffusion models",
    metric="frechet",
    goal="min",
    build=build,
    scales={
        "smoke": {
            **SMALL,
            **{"data": "digits", "train_images": 400, "size": 8, "multipliers": (1, 2)},
            **{"iterations": 12, "ema": 0.8, "samples": 100},
            **{"sampler": "ddim", "sampling_steps": 5},
        },
        "laptop": {
            **SMALL,
            **{"data": "fashion_mnist", "train_images": 20_000, "size": 16},
            **{"multipliers": (1, 2, 4), "dropout": 0.0},
            **{"iterations": 500, "ema": 0.98, "samples": 300},
            # With 10 steps DDIM's samples stay as far from real ones, however long one trains.
            **{"sampler": "ddim", "sampling_steps": 25},
        },
        "paper": PAPER,
    },
    data=("fashion_mnist", "cifar10"),
    published={"hvadam": 11.68, "adam": 15.09, "sgd": 82.29},
    published_from="They are the paper's appendix G, which says nothing of learning rates, "
    "iterations, samples and sampling steps: ours are those of the code that it names.",
)
