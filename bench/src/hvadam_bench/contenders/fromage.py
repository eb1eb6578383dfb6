"""Fromage: in each tensor, steps as long as a fraction of its norm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, ours, tensor_by_tensor


@tensor_by_tensor
def oracle(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield a tensor after each step of the paper's update."""
    lr = options["lr"]
    for g in grads:
        size, slope = np.sqrt(np.sum(theta**2)), np.sqrt(np.sum(g**2))
        direction = g / slope * size if size > 0 and slope > 0 else g
        theta = (theta - lr * direction) / np.sqrt(1 + lr**2)
        yield theta


SPEC = OptimizerSpec(
    name="fromage",
    label="Fromage",
    paper="arXiv:2002.03432",
    source="ours, from the paper: the authors' code and its copies are not free to use",
    build=ours("fromage", "Fromage"),
    defaults={"lr": 1e-2},
    oracle=oracle,
    cases=[Case({"lr": 0.5})],
    elementwise=False,
)
