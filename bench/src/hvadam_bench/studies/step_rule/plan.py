"""Candidates for another step along the hidden vector, on ten small problems, in stages.

Five problems are smooth, full batch and without noise, five have mini-batches; a run takes a second
or two. None of them is among those that the choice is tried on afterwards. The rules of the choice
are in `docs/decisions/0032-choosing-the-step.md`, which was written before the first run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hvadam_bench.contenders import TRIAL
from hvadam_bench.sweeping.search import Contest, Entry

SMOOTH = (
    *("heat_pinn", "two_spirals", "multiscale_regression"),
    *("matrix_factorization", "digits_autoencoder"),
)
NOISY = (
    *("digits_normed_cnn", "digits_vae", "online_regression", "pydoc_gru", "pydoc_transformer"),
)
# Where everyone's search begins: small networks and short runs want large rates.
FIRST_RATE = {**dict.fromkeys(SMOOTH, 3e-2), **dict.fromkeys(NOISY, 1e-2)}


def candidate(variant: str, **options: Any) -> Entry:
    """Return a candidate: the adaptive path with a constant gain, but for what is given."""
    return Entry(TRIAL, options, variant=variant)


REFERENCES = (Entry("adam"), Entry("nadam"))
PAPER = Entry("hvadam")
CONTROLS = (
    *REFERENCES,
    Entry("adam", {"betas": [0.95, 0.999]}, variant="beta1 0.95"),
    Entry("adam", {"betas": [0.99, 0.999]}, variant="beta1 0.99"),
    # With the candidates' eps, so that only what is divided by differs.
    Entry("adabelief", {"eps": 1e-12}),
    candidate(
        "AdaBelief, look-ahead", hidden_scale=0.0, preconditioner="belief", momentum="nesterov"
    ),
    # The published 0.9999 remembers 10,000 steps, where a run has 500 to 2,000.
    Entry("ademamix", {"betas": [0.9, 0.999, 0.999]}),
    PAPER,
)
SCALES = (0.0, 0.25, 0.5, 1.0)
GRID = tuple(
    candidate(f"c {scale:g}{words}", hidden_scale=scale, momentum=momentum)
    for momentum, words in (("average", ""), ("nesterov", ", look-ahead"))
    for scale in SCALES
)


_AHEAD = {"momentum": "nesterov"}
_MORE = {"betas": [0.95, 0.999]}
# The ideas that the rules name for the second stage; and a larger beta1 together with look-ahead,
# for which the first stage spoke.
IDEAS = (
    candidate("c 0.5, gated look-ahead", hidden_scale=0.5, momentum="gated"),
    candidate("c 1, both gated", hidden_scale=1.0, hidden_gain="gate", momentum="gated"),
    candidate("c 0.5, line", hidden_scale=0.5, projection="line"),
    candidate("c 0.5, s of Adam", hidden_scale=0.5, preconditioner="adam", eps=1e-8),
    Entry("nadam", _MORE, variant="beta1 0.95"),
    candidate("c 0, look-ahead, beta1 0.95", hidden_scale=0.0, **_AHEAD, **_MORE),
    candidate("c 0.25, look-ahead, beta1 0.95", hidden_scale=0.25, **_AHEAD, **_MORE),
    candidate("c 0.5, look-ahead, beta1 0.95", hidden_scale=0.5, **_AHEAD, **_MORE),
    candidate("c 0.25, look-ahead, line", hidden_scale=0.25, projection="line", **_AHEAD),
    candidate("c 0.5, weighed", hidden_scale=0.5, metric="preconditioned"),
    candidate("c 0.5, gamma 0.1", hidden_scale=0.5, gamma=0.1),
    candidate("c 0.5, eps 1e-16", hidden_scale=0.5, eps=1e-16),
    candidate("c 0.5, threshold 0.3", hidden_scale=0.5, restart_threshold=0.3),
    candidate("c 0.5, gamma 1", hidden_scale=0.5, gamma=1.0),
    candidate("c 0.5, threshold 0", hidden_scale=0.5, restart_threshold=0.0),
    candidate("c 0.5, s of AdaBelief", hidden_scale=0.5, preconditioner="belief"),
    candidate("c 0.5, gated", hidden_scale=0.5, hidden_gain="gate"),
)
# By score and by the halves; and Adam with more momentum, for it did on the smooth half what the
# candidates did.
FINALISTS = ("c 0.5", "c 1", "c 0.5, s of Adam", "c 0.5, weighed", "c 0.25, look-ahead")
FINAL = (
    *(entry for entry in CONTROLS if entry.entrant in ("adam", "nadam", "adam (beta1 0.95)")),
    PAPER,
    *(entry for entry in (*GRID, *IDEAS) if entry.variant in FINALISTS),
)


# Four learning rates at first, then three, because the lowest was hardly anybody's best.
STAGES: Mapping[str, tuple[Sequence[Entry], dict[str, Any]]] = {
    "step_rule_1": ([*CONTROLS, *GRID], {"trials": 4, "seeds": 2}),
    "step_rule_2": ([*REFERENCES, PAPER, *IDEAS], {"trials": 3, "seeds": 2}),
    # The finalists, by seeds that no stage has seen.
    "step_rule_3": (FINAL, {"trials": 3, "tuning_seeds": 2, "seeds": 5, "first_seed": 100}),
}


@dataclass(frozen=True)
class Plan:
    """What is compared.

    Attributes:
        stages: The contests of every stage, by its name: everyone on each problem, tuned alike.
        run: The stages whose runs are made; all are scored, as far as their records go.
        references: The entrants whose lower loss on a problem the losses there are divided by.
        smooth: The problems of the smooth half; the others are the noisy half.
    """

    stages: Mapping[str, Sequence[Contest]]
    run: Sequence[str]
    references: tuple[str, ...] = tuple(entry.entrant for entry in REFERENCES)
    smooth: tuple[str, ...] = SMOOTH


def plan(
    *, stages: tuple[int, ...] = (1, 2, 3), records_only: bool = False, smoke: bool = False
) -> Plan:
    """Return the stages of the choice.

    Args:
        stages: Make the runs of these stages only.
        records_only: Only score the records that there are.
        smoke: Make a few tiny runs of the first stage, to see that it works.

    Raises:
        ValueError: There is no such stage.
    """
    names = [f"step_rule_{number}" for number in stages]
    for name in set(names) - set(STAGES):
        raise ValueError(f"there is no stage {name!r}; choose from {', '.join(STAGES)}.")
    contests = {name: _contests(*stage) for name, stage in STAGES.items()}
    if smoke:
        few = ("adam", "nadam", "hvadam")
        tiny = [replace(one, scale="smoke", trials=1, only=few) for one in contests["step_rule_1"]]
        return Plan({"step_rule_1": tiny[:: len(SMOOTH)]}, ["step_rule_1"])
    return Plan(contests, [] if records_only else names)


def _contests(entries: Sequence[Entry], budget: dict[str, Any]) -> list[Contest]:
    """Return everyone on every problem, all searches of a problem beginning at one rate."""
    return [
        Contest(
            task, [replace(one, options={"lr": lr, **one.options}) for one in entries], **budget
        )
        for task, lr in FIRST_RATE.items()
    ]
