"""SWA: train with another optimizer, evaluate the average of its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._inner_oracle import InnerOracle
from hvadam_bench.contenders._search import log_grid
from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build our SWA."""
    from hvadam_bench.contenders._implementations.swa import SWA

    return SWA(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the inner optimizer."""
    inner = InnerOracle(params, options)
    trace = [params]
    for step in grads:
        trace.append(inner.step(trace[-1], step))
    return trace[1:]


def evaluated(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the average of the weights so far after each step."""
    trace = oracle(params, grads, options)
    shown = []
    for t in range(1, len(trace) + 1):
        chosen = trace[options["start"] - 1 : t : options["every"]] or [trace[t - 1]]
        shown.append([np.mean(tensors, axis=0) for tensors in zip(*chosen, strict=True)])
    return shown


SPEC = OptimizerSpec(
    name="swa",
    label="SWA",
    paper="arXiv:1803.05407",
    source="ours around torch.optim; torch.optim.swa_utils averages models, it is no optimizer",
    build=build,
    defaults={
        "lr": 0.1,
        "start": 1,  # averages everything: give three quarters of the steps, as the paper does
        "every": 1,
        "inner": "sgd",
        "momentum": 0.9,
        "betas": (0.9, 0.999),
        "eps": 1e-8,
        "weight_decay": 0.0,
    },
    search={"lr": log_grid(1e-3, 1.0)},
    oracle=oracle,
    cases=[
        Case({"start": 5, "every": 3, "weight_decay": 0.1}),
        Case({"inner": "adam", "lr": 1e-2, "betas": (0.5, 0.9), "start": 3}),
    ],
    bad=[
        BadCase({"lr": -1.0}, "SWA: lr must be >= 0 and finite, got -1"),
        BadCase({"inner": "lbfgs"}, "SWA: inner must be one of 'sgd', 'adam', got 'lbfgs'"),
        BadCase({"momentum": 1.0}, r"SWA: momentum must be in \[0, 1\), got 1"),
        BadCase({"betas": (0.9, 1.0)}, r"SWA: betas\[1\] must be in \[0, 1\), got 1"),
        BadCase({"eps": 0.0}, "SWA: eps must be > 0 and finite, got 0"),
        BadCase({"weight_decay": -1.0}, "SWA: weight_decay must be >= 0"),
        BadCase({"start": 0}, "SWA: start must be a whole number >= 1, got 0"),
        BadCase({"every": 0.5}, "SWA: every must be a whole number >= 1, got 0.5"),
    ],
    evaluation=lambda optimizer: optimizer.evaluation(),
    averages=True,
    evaluated=evaluated,
)
