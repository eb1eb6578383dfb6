"""Fromage: in each tensor, steps as long as a fraction of its norm.

θ ← (θ - lr·g·‖θ‖/‖g‖) / √(1 + lr²), where the quotient of norms is taken as 1 if either is 0. The
division undoes the growth of ‖θ‖ that orthogonal steps cause, so there is no weight decay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, stepping, tensor_by_tensor


def update(p: Any, g: Any, state: Any, group: Any, lr: float) -> None:
    """Take one step of a tensor."""
    move(p, g, p.norm(), g.norm(), lr)


def move(p: Any, g: Any, size: Any, slope: Any, lr: float) -> None:
    """Take one step, given the norms of a tensor and of its gradient."""
    # On the device, so that nothing waits for the norms.
    scale = (size / slope).where((size > 0) & (slope > 0), size.new_ones(()))
    p.sub_(g * scale * lr).div_(math.sqrt(1 + lr**2))


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
    build=stepping("Fromage", update),
    defaults={"lr": 1e-2},
    oracle=oracle,
    cases=[Case({"lr": 0.5})],
    elementwise=False,
)
