"""L-BFGS, alone or after Adam or HVAdam, as physics-informed networks are usually trained.

The first optimizer's learning rate follows the task's schedule as if its share were the whole run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._hvadam import contender
from hvadam_bench.contenders._inner import InnerOracle
from hvadam_bench.contenders._spec import Arrays, Build, OptimizerSpec, builder, ours

WITH_PAPER = "arXiv:2402.01868, which switches after 1,000, 11,000 or 31,000 of 41,000"
HISTORY = {"history_size": 100, "max_eval": 25}
# A share of the evaluations, and their number, which the runner fills in.
SWITCH = {"switch": 0.5, "horizon": 1000, **HISTORY}
HVADAM = contender("full")
# L-BFGS would not go on with decay, nor with a step that is still due.
WITHOUT = ("weight_decay", "weight_decay_mode", "hidden_step")


def then_lbfgs(first: Build) -> Build:
    """Return what builds an optimizer with L-BFGS after it."""

    def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
        from hvadam_bench.contenders._implementations.lbfgs import ThenLBFGS

        switch = {name: options[name] for name in SWITCH}
        return ThenLBFGS(first(model, groups, _without_switch(options)), **switch)

    return build


def adam(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of Adam."""
    inner = InnerOracle(params, {**options, "inner": "adam", "weight_decay": 0.0})
    trace = [params]
    for step in grads:
        trace.append(inner.step(trace[-1], step))
    return trace[1:]


def hvadam(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of HVAdam."""
    assert HVADAM.oracle is not None
    return HVADAM.oracle(params, grads, {**HVADAM.defaults, **_without_switch(options)})


def direction(
    places: Sequence[np.ndarray], gradients: Sequence[np.ndarray], options: Mapping[str, Any]
) -> np.ndarray:
    """Return the direction of the step from the last place, by matrices rather than recursion.

    H ← (1 - ρ s yᵀ) H (1 - ρ y sᵀ) + ρ s sᵀ over the pairs of the history, from (sᵀy / yᵀy) 1 of
    the newest one; the direction is -H g.
    """
    pairs = [
        (b - a, d - c)
        for a, b, c, d in zip(places, places[1:], gradients, gradients[1:], strict=False)
    ]
    pairs = [(s, y) for s, y in pairs if s @ y > 0][-options["history_size"] :]
    one = np.eye(len(places[0]))
    h = one * (pairs[-1][0] @ pairs[-1][1]) / (pairs[-1][1] @ pairs[-1][1]) if pairs else one
    for s, y in pairs:
        left = one - np.outer(s, y) / (s @ y)
        h = left @ h @ left.T + np.outer(s, s) / (s @ y)
    return -h @ gradients[-1]


def _without_switch(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in SWITCH}


SPECS = [
    OptimizerSpec(
        name="lbfgs",
        label="L-BFGS",
        paper="Liu and Nocedal, 1989, doi:10.1007/BF01589116",
        source="torch.optim.LBFGS with strong Wolfe line search, held to a limit of evaluations",
        build=ours("lbfgs", "LBFGS"),
        defaults={"lr": 1.0, **HISTORY},
        elementwise=False,
        closure=True,
        direction=direction,
    ),
    OptimizerSpec(
        name="adam_lbfgs",
        label="Adam, then L-BFGS",
        paper=WITH_PAPER,
        source="torch.optim.Adam, then torch.optim.LBFGS",
        build=then_lbfgs(builder("torch.optim", "Adam")),
        defaults={"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, **SWITCH},
        oracle=adam,
        elementwise=False,
        closure=True,
        direction=direction,
    ),
    OptimizerSpec(
        name="hvadam_lbfgs",
        label="HVAdam, then L-BFGS",
        paper=f"{HVADAM.paper}; {WITH_PAPER}",
        source="ours: hvadam.HVAdam, then torch.optim.LBFGS",
        build=then_lbfgs(HVADAM.build),
        defaults={
            **{name: value for name, value in HVADAM.defaults.items() if name not in WITHOUT},
            **SWITCH,
        },
        oracle=hvadam,
        elementwise=False,
        closure=True,
        direction=direction,
    ),
]
