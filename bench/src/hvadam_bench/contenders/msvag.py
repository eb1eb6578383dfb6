"""M-SVAG: momentum, each coordinate damped by how noisy its gradients are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._spec import Arrays, BadCase, Case, OptimizerSpec


def build(model: Any, groups: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Build our MSVAG."""
    from hvadam_bench.contenders._implementations.msvag import MSVAG

    return MSVAG(groups, **options)


def oracle(params: Arrays, grads: Sequence[Arrays], options: Mapping[str, Any]) -> list[Arrays]:
    """Return the parameters after each step of the paper's update."""
    lr, beta, decay = (options[name] for name in ("lr", "beta", "weight_decay"))
    theta = [np.array(p) for p in params]
    m_tilde, v_tilde = ([np.zeros_like(p) for p in params] for _ in range(2))
    trace = []
    for t, step in enumerate(grads, 1):
        # Capped as in the authors' code, for s would be 0 / 0 at the first step.
        rho = (1 - beta) ** 2 * (1 - beta ** (2 * t)) / ((1 - beta**t) ** 2 * (1 - beta**2))
        rho = min(rho, 0.9999)
        for i, gradient in enumerate(step):
            g = gradient + decay * theta[i]
            m_tilde[i] = beta * m_tilde[i] + (1 - beta) * g
            v_tilde[i] = beta * v_tilde[i] + (1 - beta) * g**2
            m, v = m_tilde[i] / (1 - beta**t), v_tilde[i] / (1 - beta**t)
            s = (v - m**2) / (1 - rho)
            with np.errstate(invalid="ignore"):
                factor = np.clip(m**2 / (m**2 + rho * s), 0, 1)
            theta[i] = theta[i] - lr * np.where(np.isnan(factor), 0, factor) * m
        trace.append([p.copy() for p in theta])
    return trace


SPEC = OptimizerSpec(
    name="msvag",
    label="MSVAG",
    paper="arXiv:1705.07774",
    source="ours, after the authors' TensorFlow code; the ports to PyTorch de-bias v differently",
    build=build,
    defaults={"lr": 0.1, "beta": 0.9, "weight_decay": 0.0},
    oracle=oracle,
    cases=[Case({"beta": 0.0}), Case({"beta": 0.99, "weight_decay": 0.1})],
    bad=[
        BadCase({"lr": -1.0}, "MSVAG: lr must be >= 0 and finite, got -1"),
        BadCase({"beta": 1.0}, r"MSVAG: beta must be in \[0, 1\), got 1"),
        BadCase({"weight_decay": -1.0}, "MSVAG: weight_decay must be >= 0"),
    ],
)
