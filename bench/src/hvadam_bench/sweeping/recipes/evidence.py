"""What HVAdam is judged on: smooth problems, doses of gradient noise, and mini-batches.

Everyone is tuned alike and judged by ten fresh seeds. On smooth problems Adam and HVAdam run with a
larger beta1 too, for more momentum alone does much there
(`docs/decisions/0032-choosing-the-step.md`). L-BFGS has no rate to tune; after another optimizer it
takes that one's rate. Decay is decoupled and the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hvadam_bench.sweeping.recipes._spec import Recipe
from hvadam_bench.sweeping.search import Contest, Entry

# Where everyone's search for a rate begins, by task, in the order in which they run.
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
MINIBATCH: Mapping[str, float] = {
    "shakespeare_gpt": 3e-3,
    "fashion_mnist_60k": 3e-3,
    "ptb_lstm128": 1e-2,
    "cifar10_resnet8": 1e-2,
}
MORE_MOMENTUM = tuple(
    Entry(name, {"betas": [0.95, 0.999]}, variant="beta1 0.95") for name in ("adam", "hvadam")
)
# AdaBelief's eps joins its average at every step: its default would act like 3e-3 in Adam.
TUNED = (
    *(Entry("adam"), Entry("nadam"), Entry("adabelief", {"eps": 1e-16}), Entry("hvadam")),
    *MORE_MOMENTUM,
)
QUASI_NEWTON = (
    Entry("lbfgs", rates=[1.0]),
    Entry("adam_lbfgs", rate_of="adam"),
    Entry("hvadam_lbfgs", rate_of="hvadam"),
)
# Examples that a step sees, from all of them down to a 256th, by task; None for all.
DOSES: Mapping[str, Sequence[int | None]] = {
    "pinn_burgers": (None, 75, 19, 5, 1),
    "siren_image": (None, 1024, 256, 64, 16),
    "autoencoder_full_batch": (None, 128, 32, 8, 2),
    "shakespeare_windows": (0, 64, 16, 4, 1),
}
DOSED = (Entry("adam"), Entry("hvadam"))
DECAYED = (Entry("adamw"), Entry("nadam"), Entry("hvadam"))


def starting(entries: Sequence[Entry], lr: float) -> list[Entry]:
    """Return entries whose searches all begin at one learning rate."""
    return [replace(one, options={"lr": lr, **one.options}) for one in entries]


def _smooth(task: str, lr: float) -> Contest:
    entries = [*starting(TUNED, lr), *QUASI_NEWTON]
    return Contest(task, entries, trials=5, tuning_seeds=2, seeds=10)


def _dosed(task: str, batch: int | None) -> Contest:
    entries = starting(DOSED, SMOOTH.get(task, 1e-2))
    return Contest(task, entries, settings={"batch": batch}, trials=3, seeds=5)


def _minibatch(task: str, lr: float) -> Contest:
    from hvadam_bench import tasks

    half: dict[str, Any] = {"steps": tasks.get(task).scales["laptop"]["steps"] // 2}
    return Contest(
        task,
        starting(DECAYED, lr),
        tuning_settings=half,
        trials=4,
        tuning_seeds=2,
        choice="plateau",
        seeds=10,
        reference="adamw",
    )


RECIPES = (
    Recipe(
        name="evidence_smooth",
        reproduces="ours: eight problems without gradient noise",
        studies=[_smooth(task, lr) for task, lr in SMOOTH.items()],
    ),
    Recipe(
        name="evidence_noise",
        reproduces="ours: four problems with five doses of gradient noise",
        studies=[_dosed(task, batch) for task, doses in DOSES.items() for batch in doses],
    ),
    Recipe(
        name="evidence_minibatch",
        reproduces="ours: four trainings with mini-batches",
        studies=[_minibatch(task, lr) for task, lr in MINIBATCH.items()],
    ),
)
