"""What HVAdam is judged on: smooth problems, doses of gradient noise, and mini-batches.

Everyone is tuned alike and judged by ten fresh seeds. On smooth problems Adam and HVAdam run with a
larger beta1 too, because more momentum alone does much there
(`docs/decisions/0032-choosing-the-step.md`). L-BFGS has no rate to tune; after another optimizer it
takes that one's rate. Decay is decoupled and the same for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hvadam_bench import tasks
from hvadam_bench.registry import instead
from hvadam_bench.sweeping.search import Contest, Entry

Contests = Mapping[str, Sequence[Contest]]  # by part, in the order in which they run
PARTS = ("smooth", "noise", "minibatch")
REFERENCES: Mapping[str, str] = {"smooth": "adam", "minibatch": "adamw"}
STEPS = ("runs", "baselines", "times", "evidence")
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
# Adam with more momentum and nothing else, and HVAdam with as much.
CONTROL, AS_MUCH = (entry.entrant for entry in MORE_MOMENTUM)
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


@dataclass(frozen=True)
class Plan:
    """What is done."""

    contests: Contests  # of every part, whose records the evidence is computed from
    parts: tuple[str, ...]  # whose runs are made and whose evaluations are timed
    steps: tuple[str, ...]  # some of `STEPS`
    scale: str  # of the tasks


def plan(
    *,
    parts: tuple[str, ...] = PARTS,
    steps: tuple[str, ...] = ("runs", "evidence"),
    smoke: bool = False,
) -> Plan:
    """Return the whole comparison, or some of it.

    Args:
        parts: Make the runs of these parts only: smooth, noise, minibatch.
        steps: What to do: runs (make the runs), baselines (fit logistic regression and bigrams),
            times (time an evaluation with each contender's step, on a quiet machine), evidence
            (compute the numbers of the pages from all records that there are).
        smoke: Do all of it with a few tiny runs, to see that it works.

    Raises:
        ValueError: There is no such part or step.
    """
    for what, given, known in (("part", parts, PARTS), ("step", steps, STEPS)):
        for name in set(given) - set(known):
            raise ValueError(f"there is no {what} {name!r}; {instead(name, [*known])}")
    chosen = tuple(part for part in PARTS if part in parts)
    if not smoke:
        return Plan(contests(), chosen, steps, "laptop")
    # One contest of each part with a few entries, which nobody tunes.
    few = ("adam", "adamw", "nadam", "hvadam")
    tiny = {
        part: [replace(own[0], scale="smoke", only=few, trials=1, seeds=2)]
        for part, own in contests().items()
    }
    return Plan(tiny, chosen, STEPS, "smoke")


def contests() -> Contests:
    """Return every contest of the comparison."""
    judged: dict[str, Any] = {"tuning_seeds": 2, "seeds": 10}
    smooth = [
        Contest(task, [*_starting(TUNED, lr), *QUASI_NEWTON], trials=5, **judged)
        for task, lr in SMOOTH.items()
    ]
    noise = [
        Contest(
            task,
            _starting(DOSED, SMOOTH.get(task, 1e-2)),
            settings={"batch": batch},
            trials=3,
            seeds=5,
        )
        for task, doses in DOSES.items()
        for batch in doses
    ]
    minibatch = [
        Contest(
            task,
            _starting(DECAYED, lr),
            tuning_settings={"steps": tasks.get(task).scales["laptop"]["steps"] // 2},
            trials=4,
            choice="plateau",
            reference=REFERENCES["minibatch"],
            **judged,
        )
        for task, lr in MINIBATCH.items()
    ]
    return {"smooth": smooth, "noise": noise, "minibatch": minibatch}


def _starting(entries: Iterable[Entry], lr: float) -> list[Entry]:
    """Return entries whose searches all begin at one learning rate."""
    return [replace(one, options={"lr": lr, **one.options}) for one in entries]
