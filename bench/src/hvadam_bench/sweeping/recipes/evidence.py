"""What HVAdam is judged on: smooth problems, doses of gradient noise, and mini-batches.

Everyone is tuned alike and judged by ten fresh seeds. Adam with a larger beta1 stands beside the
others on smooth problems, for more momentum alone does much there
(`docs/decisions/0032-choosing-the-step.md`). Decay is decoupled and the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Entry, Study

# Where everyone's search for a rate begins, by task.
SMOOTH: Mapping[str, float] = {
    "matrix_completion": 1e-2,
    "pinn_burgers": 1e-2,
    "ode_fit": 3e-2,
    "pinn_reaction": 1e-2,
    "siren_image": 3e-3,
    "pinn_convection": 1e-2,
    "autoencoder_full_batch": 3e-3,
    "pinn_wave": 1e-2,
}
MORE_MOMENTUM = Entry("adam", {"betas": [0.95, 0.999]}, variant="beta1 0.95")
# AdaBelief's eps joins its average at every step: with its default it would be 3e-3 here.
TUNED = (
    *(Entry("adam"), MORE_MOMENTUM, Entry("nadam")),
    *(Entry("adabelief", {"eps": 1e-16}), Entry("hvadam")),
)


def starting(entries: Sequence[Entry], lr: float) -> list[Entry]:
    """Return entries whose searches all begin at one learning rate."""
    return [replace(one, options={"lr": lr, **one.options}) for one in entries]


def _smooth(task: str, lr: float, **plan: Any) -> Study:
    return Study(task, starting(TUNED, lr), trials=5, tuning_seeds=2, seeds=10, **plan)


RECIPES = (
    Recipe(
        name="evidence_smooth",
        reproduces="ours: eight problems without gradient noise",
        studies=[_smooth(task, lr) for task, lr in SMOOTH.items()],
    ),
)
