"""M-SVAG: momentum, each coordinate damped by how noisy its gradients are.

m = Σ βg / Σ β and v = Σ βg² / Σ β are averages with weights β^age, ρ = (1-β)(1+β^t) /
((1+β)(1-β^t)) is the share of a gradient's variance that m keeps, s = (v - m²) / (1-ρ) estimates
that variance, and θ ← θ - lr·m·m² / (m² + ρs).

It differs from the authors' code in the first step alone: that caps ρ at 0.9999, which magnifies
the rounding of v - m² ten thousand times; here a single gradient has no variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hvadam_bench.contenders._options import share
from hvadam_bench.contenders._spec import Array, Case, OptimizerSpec, stepping, tensor_by_tensor

# ρ is 1 where the average is of one gradient alone: at the first step, and always if beta is 0.
_SINGLE = 0.9999


def update(p: Any, g: Any, state: Any, group: Any, lr: float) -> None:
    """Take one step of a tensor."""
    beta, power = group["beta"], group["beta"] ** state["step"]
    state["exp_avg"].mul_(beta).add_(g, alpha=1 - beta)
    state["exp_avg_sq"].mul_(beta).addcmul_(g, g, value=1 - beta)

    m = state["exp_avg"] / (1 - power)
    m_squared = m.square()
    rho = (1 - beta) * (1 + power) / ((1 + beta) * (1 - power))
    variance = (state["exp_avg_sq"] / (1 - power)).sub_(m_squared)
    variance = variance.div_(1 - rho) if rho < _SINGLE else variance.zero_()
    factor = m_squared / variance.mul_(rho).add_(m_squared)
    factor = factor.clamp_(0, 1).nan_to_num_(nan=0.0)  # 0/0: no gradient so far
    p.addcmul_(factor, m, value=-lr)


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
    build=stepping("MSVAG", update, "exp_avg", "exp_avg_sq", beta=share),
    defaults={"lr": 0.1, "beta": 0.9, "weight_decay": 0.0},
    oracle=oracle,
    cases=[Case({"beta": 0.0}), Case({"beta": 0.99, "weight_decay": 0.1})],
)
