"""M-SVAG: momentum, each coordinate damped by how noisy its gradients are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, ours, tensor_by_tensor


@tensor_by_tensor
def oracle(theta: Array, grads: Sequence[Array], options: Mapping[str, Any]) -> Iterator[Array]:
    """Yield a tensor after each step of the paper's update."""
    lr, beta, decay = (options[name] for name in ("lr", "beta", "weight_decay"))
    m_tilde, v_tilde = (np.zeros_like(theta) for _ in range(2))
    for t, gradient in enumerate(grads, 1):
        # Capped as in the authors' code, for s would be 0 / 0 at the first step.
        rho = (1 - beta) ** 2 * (1 - beta ** (2 * t)) / ((1 - beta**t) ** 2 * (1 - beta**2))
        rho = min(rho, 0.9999)
        g = gradient + decay * theta
        m_tilde = beta * m_tilde + (1 - beta) * g
        v_tilde = beta * v_tilde + (1 - beta) * g**2
        m, v = m_tilde / (1 - beta**t), v_tilde / (1 - beta**t)
        s = (v - m**2) / (1 - rho)
        with np.errstate(invalid="ignore"):
            factor = np.clip(m**2 / (m**2 + rho * s), 0, 1)
        theta = theta - lr * np.where(np.isnan(factor), 0, factor) * m
        yield theta


SPEC = OptimizerSpec(
    name="msvag",
    label="MSVAG",
    paper="arXiv:1705.07774",
    source="ours, after the authors' TensorFlow code; the ports to PyTorch de-bias v differently",
    build=ours("msvag", "MSVAG"),
    defaults={"lr": 0.1, "beta": 0.9, "weight_decay": 0.0},
    oracle=oracle,
    cases=[Case({"beta": 0.0}), Case({"beta": 0.99, "weight_decay": 0.1})],
)
