"""Lookahead: k steps of another optimizer, then one step back along the way that they went.

The parameters are the fast weights θ. After every k steps the slow weights φ, which start at the
initial θ, follow by φ ← φ + α(θ - φ), and θ starts again from φ. The inner optimizer's own state,
such as its momentum, goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from hvadam_bench.contenders._inner import DEFAULTS, InnerOracle, inner_step
from hvadam_bench.contenders._options import between
from hvadam_bench.contenders._spec import Arrays, Case, OptimizerSpec, both, stepping


def update(p: Any, g: Any, state: Any, group: Any, lr: float) -> None:
    """Take one step of a tensor."""
    if state["step"] == 1:
        state["slow"].copy_(p)
    inner_step(p, g, state, group, lr)
    if state["step"] % group["k"] == 0:
        p.copy_(state["slow"].lerp_(p, group["alpha"]))


def _slow(p: Any, state: Any, group: Any) -> Any:
    return state["slow"]


def _run(
    params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]
) -> Iterator[tuple[Arrays, Arrays]]:
    """Yield the fast and the slow weights after each step, by the paper's update."""
    alpha, inner = options["alpha"], InnerOracle(params, options)
    fast = slow = [np.array(p) for p in params]
    for t, step in enumerate(grads, 1):
        fast = inner.step(fast, step)
        if t % options["k"] == 0:
            slow = [phi + alpha * (p - phi) for phi, p in zip(slow, fast, strict=True)]
            fast = slow
        yield fast, slow


oracle, evaluated = both(_run)
SPEC = OptimizerSpec(
    name="lookahead",
    label="Lookahead",
    paper="arXiv:1907.08610",
    source="ours around torch.optim, which has none",
    build=stepping("Lookahead", update, "slow", shown=_slow, alpha=partial(between, low=0, high=1)),
    defaults={"lr": 0.1, "k": 5, "alpha": 0.5, **DEFAULTS},
    oracle=oracle,
    cases=[
        Case({"k": 3, "alpha": 0.8, "weight_decay": 0.1}),
        Case({"inner": "adam", "lr": 1e-2, "betas": (0.5, 0.9)}),
        Case({"k": 1, "alpha": 1.0}),  # the inner optimizer
    ],
    evaluation=methodcaller("evaluation"),
    averages=True,
    evaluated=evaluated,
)
