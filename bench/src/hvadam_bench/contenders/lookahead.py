"""Lookahead: k steps of another optimizer, then one step back along the way that they went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._inner_oracle import InnerOracle
from hvadam_bench.contenders._spec import Arrays, Case, OptimizerSpec, ours


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the fast weights after each step, by the paper's update."""
    return [fast for fast, _ in _run(params, grads, options)]


def evaluated(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the slow weights after each step."""
    return [slow for _, slow in _run(params, grads, options)]


def _run(
    params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]
) -> list[tuple[Arrays, Arrays]]:
    """Return the fast and the slow weights after each step."""
    alpha, inner = options["alpha"], InnerOracle(params, options)
    fast = slow = [np.array(p) for p in params]
    trace = []
    for t, step in enumerate(grads, 1):
        fast = inner.step(fast, step)
        if t % options["k"] == 0:
            slow = [phi + alpha * (p - phi) for phi, p in zip(slow, fast, strict=True)]
            fast = slow
        trace.append((fast, slow))
    return trace


SPEC = OptimizerSpec(
    name="lookahead",
    label="Lookahead",
    paper="arXiv:1907.08610",
    source="ours around torch.optim, which has none",
    build=ours("lookahead", "Lookahead"),
    defaults={
        "lr": 0.1,
        "k": 5,
        "alpha": 0.5,
        "inner": "sgd",
        "momentum": 0.9,
        "betas": (0.9, 0.999),
        "eps": 1e-8,
        "weight_decay": 0.0,
    },
    oracle=oracle,
    cases=[
        Case({"k": 3, "alpha": 0.8, "weight_decay": 0.1}),
        Case({"inner": "adam", "lr": 1e-2, "betas": (0.5, 0.9)}),
        Case({"k": 1, "alpha": 1.0}),  # the inner optimizer
    ],
    evaluation=lambda optimizer: optimizer.evaluation(),
    averages=True,
    evaluated=evaluated,
)
