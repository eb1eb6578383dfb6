"""Fromage: in each tensor, steps as long as a fraction of its norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build our Fromage."""
    from hvadam_bench.contenders._implementations.fromage import Fromage

    return Fromage(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr = options["lr"]
    theta = [np.array(p) for p in params]
    trace = []
    for step in grads:
        for i, g in enumerate(step):
            size, slope = np.sqrt(np.sum(theta[i] ** 2)), np.sqrt(np.sum(g**2))
            direction = g / slope * size if size > 0 and slope > 0 else g
            theta[i] = (theta[i] - lr * direction) / np.sqrt(1 + lr**2)
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="fromage",
    label="Fromage",
    paper="arXiv:2002.03432",
    source="ours, from the paper: the authors' code and its copies are not free to use",
    build=build,
    defaults={"lr": 1e-2},
    oracle=oracle,
    cases=[Case({"lr": 0.5})],
    bad=[BadCase({"lr": -1.0}, "Fromage: lr must be >= 0 and finite, got -1")],
    elementwise=False,
)
