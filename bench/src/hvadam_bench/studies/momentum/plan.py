"""Momenta that follow the zigzag, and fixed ones, on twenty small problems, in three stages.

Ten problems are smooth, with one loss at every step, ten have mini-batches; a run takes one to
three seconds of a core. The rules are in
`docs/decisions/0038-a-momentum-that-follows-the-zigzag.md`, which was written before the first run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hvadam_bench.sweeping.search import Contest, Entry

Kind = Literal["smooth", "noisy"]
REFERENCE = "adam"


@dataclass(frozen=True)
class Problem:
    """One training that contenders are compared on.

    Attributes:
        name: On the page.
        kind: Which half it belongs to.
        lr: Where everyone's search for a learning rate begins.
        task: The bench's name, if that is another.
        settings: What differs from the task's at its scale.
    """

    name: str
    kind: Kind
    lr: float
    task: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def task_name(self) -> str:
        """Return the bench's name of the task."""
        return self.task or self.name


_GPT = {"width": 48, "inner": 192, "layers": 3, "heads": 4, "batch_size": 16, "warmup": 0.0}
# The first five of each half are those that the step was to be chosen on in decision 32.
PROBLEMS = (
    Problem("heat_pinn", "smooth", 3e-2),
    Problem("two_spirals", "smooth", 3e-2),
    Problem("multiscale_regression", "smooth", 3e-2),
    Problem("matrix_factorization", "smooth", 3e-2),
    Problem("digits_autoencoder", "smooth", 3e-2),
    Problem("deep_linear", "smooth", 1e-2),
    Problem("rosenbrock_chain", "smooth", 3e-1),
    Problem("phase_retrieval", "smooth", 5e-1),
    Problem("tensor_decomposition", "smooth", 3e-2),
    Problem("adding_rnn", "smooth", 1e-2),
    Problem("digits_normed_cnn", "noisy", 1e-2),
    Problem("digits_vae", "noisy", 1e-2),
    Problem("online_regression", "noisy", 1e-2),
    Problem("pydoc_gru", "noisy", 1e-2),
    Problem("pydoc_transformer", "noisy", 1e-2),
    # Both at once: large batches, a transformer without warm-up, deep linear maps, a GAN.
    Problem("large_batches", "noisy", 1e-2, "digits_normed_cnn", {"batch_size": 256, "epochs": 40}),
    Problem("rough_transformer", "noisy", 1e-2, "pydoc_transformer", _GPT),
    Problem("deep_linear_batches", "noisy", 1e-2, "deep_linear", {"batch": 16}),
    Problem("ring_gan", "noisy", 3e-3),
    Problem("tiny_batches", "noisy", 1e-2, "pydoc_gru", {"batch_size": 4, "epochs": 1}),
)
# The first stage has four of each half, old and new, most of them cheap.
FEW = (
    *("heat_pinn", "digits_autoencoder", "deep_linear", "tensor_decomposition"),
    *("digits_normed_cnn", "pydoc_gru", "large_batches", "deep_linear_batches"),
)


def candidate(variant: str, **options: Any) -> Entry:
    """Return a candidate: nu by tensor from 0.5, c = 0, but for what is given."""
    return Entry("zigzag", {"hidden_scale": 0.0, **options}, variant=variant)


_LATE, _SOON = {"between": [0.05, 0.15]}, {"hidden_between": [0.05, 0.15]}
_STRONG: dict[str, Any] = {"hidden_scale": 0.5}  # from a zigzag of 0.12 on, in full at 0.35
_PAPER: dict[str, Any] = {"preconditioner": "hidden", "eps": 1e-12}
_ALL = {"scope": "all"}
_BETA1: dict[str, Any] = {"moves": "beta1", "span": [0.5, 0.95]}
CANDIDATES = (
    candidate("nu 0.5"),
    candidate("nu 0.3", span=[0.3, 1.0]),
    candidate("nu 0.7", span=[0.7, 1.0]),
    candidate("nu 0.5, c", **_STRONG),
    candidate("nu 0.3, c", span=[0.3, 1.0], **_STRONG),
    candidate("nu 0.7, c", span=[0.7, 1.0], **_STRONG),
    candidate("nu 0.5, c, later", **_STRONG, **_LATE),
    candidate("nu 0.7, c, later", span=[0.7, 1.0], **_STRONG, **_LATE),
    candidate("nu 0.5, c, not held", hold=0.0, **_STRONG),
    candidate("nu 0.5, c, average 100", average=100.0, **_STRONG),
    candidate("nu 0.5, c, s of HVAdam", **_STRONG, **_PAPER),
    candidate("nu 0.5, c 0.25", hidden_scale=0.25),
    candidate("nu 0.5, all", **_ALL),
    candidate("nu 0.7, all", span=[0.7, 1.0], **_ALL),
    candidate("nu 0.5, c, all", **_STRONG, **_ALL),
    candidate("nu 0.5, c with nu, all, later", **_STRONG, **_ALL, **_LATE, **_SOON),
    candidate(
        "nu 0.7, c with nu, all, later", span=[0.7, 1.0], **_STRONG, **_ALL, **_LATE, **_SOON
    ),
    candidate("nu 0.5, c, all, s of HVAdam", **_STRONG, **_ALL, **_PAPER),
    candidate("beta1", **_BETA1),
    candidate("beta1, all", **_BETA1, **_ALL),
    candidate("beta1, later", **_BETA1, **_LATE),
    candidate("beta1, c", **_BETA1, **_STRONG),
)


# The fixed momenta and a schedule over the whole run, Adam with 0.9 first.
CONTROLS = (
    Entry(REFERENCE),
    *(
        Entry("adam", {"betas": [beta1, 0.999]}, variant=f"beta1 {beta1:g}")
        for beta1 in (0.5, 0.8, 0.95)
    ),
    Entry("nadam"),
    Entry("qhadam"),
    Entry("qhadam", {"betas": [0.9, 0.999]}, variant="beta1 0.9"),
    candidate("beta1 by schedule", **_BETA1, follows="steps"),
    Entry("hvadam"),
)


@dataclass(frozen=True)
class Stage:
    """Who is tuned on what, and by how much.

    Attributes:
        name: For the page.
        keep: How many candidates go on from it, by their score.
        trials: Learning rates for everyone at first, a factor of about √3 apart.
        tuning_seeds: Runs of each.
        seeds: Fresh ones that judge the best rate; without them the tuning runs tell the score.
        problems: Which problems.
        fixed: Whether all controls take part, or the reference alone.
    """

    name: str
    keep: int
    trials: int = 3
    tuning_seeds: int = 4
    seeds: int = 0
    problems: tuple[Problem, ...] = PROBLEMS
    fixed: bool = True
    scale: str = "laptop"

    def contest(self, problem: Problem, candidates: Sequence[Entry]) -> Contest:
        """Return everyone on a problem, all searches beginning at one rate."""
        entries = [*CONTROLS[: None if self.fixed else 1], *candidates]
        return Contest(
            problem.task_name,
            [replace(one, options={"lr": problem.lr, **one.options}) for one in entries],
            scale=self.scale,
            settings=problem.settings if self.scale == "laptop" else {},
            trials=self.trials,
            fineness=2,
            tuning_seeds=self.tuning_seeds,
            seeds=self.seeds,
        )


STAGES = (
    Stage(
        "first",
        keep=5,
        tuning_seeds=2,
        problems=tuple(one for one in PROBLEMS if one.name in FEW),
        fixed=False,
    ),
    Stage("second", keep=3),
    Stage("third", keep=0, seeds=10),
)


@dataclass(frozen=True)
class Plan:
    """What is compared.

    Attributes:
        stages: One after the other; who takes part in one follows from the one before.
        run: Those whose runs are made, by name; all are scored as far as their records go.
        candidates: Who takes part in the first.
    """

    stages: tuple[Stage, ...] = STAGES
    run: tuple[str, ...] = tuple(one.name for one in STAGES)
    candidates: tuple[Entry, ...] = CANDIDATES


def plan(
    *, stages: tuple[int, ...] = (1, 2, 3), records_only: bool = False, smoke: bool = False
) -> Plan:
    """Return the stages of the choice.

    Args:
        stages: Make the runs of these stages only.
        records_only: Only score the records that there are.
        smoke: Make a few tiny runs of every stage, to see that it works.

    Raises:
        ValueError: There is no such stage.
    """
    for number in set(stages) - {1, 2, 3}:
        raise ValueError(f"there is no stage {number}; choose from 1, 2, 3.")
    if smoke:
        two = PROBLEMS[0], PROBLEMS[10]
        tiny = [
            replace(one, keep=min(1, one.keep), tuning_seeds=1, problems=two, fixed=False)
            for one in STAGES
        ]
        tiny = [replace(one, scale="smoke", trials=2, seeds=min(one.seeds, 2)) for one in tiny]
        return Plan(tuple(tiny), candidates=CANDIDATES[:2])
    run = tuple(STAGES[number - 1].name for number in sorted(stages))
    return Plan(run=() if records_only else run)
