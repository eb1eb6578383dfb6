"""HVAdam and the levels of its ablation as contenders; they differ by a few options."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from hvadam.core.hyperparams import Hyperparams, ablation
from hvadam.core.reference import ScopeState, Slot, step
from hvadam_bench.contenders._spec import Arrays, Case, OptimizerSpec

PAPER = "HVAdam: A Full-Dimension Adaptive Optimizer, AAAI 2025"
SHARED = {
    **{"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-12, "gamma": 0.5},
    **{"weight_decay": 0.0, "weight_decay_mode": "decoupled", "hidden_gain": "exponential"},
}
FULL = {
    **{"hidden_scale": 1.0, "restart_threshold": 0.1, "scope": "global", "restart_rule": "paper"},
    **{"state_dtype": "float32", "kernel": "auto"},
    # HVAdam has no such option any more, but records hold what it was: without it they would be
    # those of other runs.
    "hidden_step": "exact",
}


def contender(level: int | str) -> OptimizerSpec:
    """Return the contender that is one level of the paper's ablation table."""
    full = level == "full"
    fixed = {} if full else ablation(level)
    # Levels 0 and 1 divide by Adam's root, beside which eps has Adam's meaning and Adam's value:
    # level 0 is Adam.
    adam = fixed.get("preconditioner") == "adam"
    defaults = {**SHARED, **({"eps": 1e-8} if adam else {}), **(FULL if full else {})}

    def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
        from hvadam.torch.optimizer import HVAdam

        with warnings.catch_warnings():  # a protocol that says eps=1e-8 means it
            warnings.filterwarnings("ignore", message="HVAdam: eps")
            return HVAdam(groups, **fixed, **_without_step(options))

    def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
        return _run(params, grads, {**_without_step(options), **fixed})

    return OptimizerSpec(
        name="hvadam" if full else f"hvadam{level}",
        label="HVAdam" if full else f"HVAdam{'⁰¹²'[int(level)]}",
        paper=PAPER if full else f"{PAPER}, ablation table, row {level}",
        source="ours: hvadam.HVAdam",
        build=build,
        defaults=defaults,
        oracle=oracle,
        cases=[*CASES, *(FULL_CASES if full else ())],
        elementwise=level == 0,
    )


CASES = (
    Case({"lr": 0.01, "weight_decay": 1.0}),
    Case({"weight_decay": 0.1, "weight_decay_mode": "coupled"}),
    Case({"betas": (0.5, 0.9), "eps": 1e-3, "gamma": 0.0, "hidden_gain": "linear"}),
)
FULL_CASES = (
    Case({"betas": (0.5, 0.6), "restart_threshold": 0.6}),
    Case({"betas": (0.5, 0.6), "restart_threshold": 0.6, "restart_rule": "authors"}),
    Case({"hidden_scale": 0.0, "kernel": "foreach"}),
)


def _without_step(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for HVAdam, which refuses any hidden_step but takes the one there is."""
    left = dict(options)
    if left.get("hidden_step") == "exact":
        del left["hidden_step"]
    return left


def _run(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Run the reference of `hvadam.core`, which judges the kernels too."""
    hyper = Hyperparams(**{name: value for name, value in options.items() if name != "kernel"})
    slots = [Slot(p, hyper) for p in params]
    scope = ScopeState()
    trace = []
    for gradients in grads:
        step(scope, slots, gradients)
        trace.append([slot.theta.copy() for slot in slots])
    return trace
