"""Cases that every kernel is tried on: options of the step, parameters, a judged training run."""

from __future__ import annotations

import math
from typing import Any

import torch
from judge import judged_step
from torch import Tensor

from hvadam import HVAdam

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.complex64]
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "gamma 0": {"gamma": 0.0, "eps": 1e-16},
    "decoupled decay": {"weight_decay": 0.1},
    "coupled decay": {"weight_decay": 0.1, "weight_decay_mode": "coupled"},
    "maximize": {"maximize": True},
    "bounds": {"bounds": (-0.5, 0.5)},
    "adam": {"preconditioner": "adam", "eps": 1e-8},
    "no hidden step": {"hidden_scale": 0.0},
    "linear gain": {"hidden_gain": "linear"},
    "group scope": {"scope": "group"},
    "tensor scope": {"scope": "tensor"},
    "restarts": {"restart_threshold": 0.6, "betas": (0.5, 0.6)},
    "authors' restarts": {
        "restart_threshold": 0.6,
        "betas": (0.5, 0.6),
        "restart_rule": "authors",
    },
    "tensor lr": {"lr": torch.tensor(1e-2)},
    "no averaging": {"betas": (0.0, 0.0)},
    "clipped": {"max_grad_norm": 1.0},
    "clipped, maximize, coupled": {
        "max_grad_norm": 1.0,
        "maximize": True,
        "weight_decay": 0.1,
        "weight_decay_mode": "coupled",
    },
}


INF = float("inf")
# Gradients that are not finite, and what an element is of one step: the next ones are ordinary.
SPOILT = {
    "inf and -inf": (INF, -INF),
    "inf and NaN": (INF, float("nan")),
    "-inf alone": (-INF, 1.0),
}
# Gradients whose squares overflow, though the numbers themselves do not.
OVERFLOWING = [(torch.float32, 1e20), (torch.float32, 2.4e25), (torch.float64, 1e200)]
FORMS: list[dict[str, Any]] = [
    {"betas": (beta1, 0.999), "gamma": gamma} for beta1 in (0.0, 0.9) for gamma in (0.0, 0.5)
]


def take_spoilt_step(optimizer: HVAdam, first: float, second: float) -> None:
    """Take judged steps, of which the second has two given numbers in the gradient."""
    (p,) = optimizer.param_groups[0]["params"]
    for i in range(4):
        p.grad = torch.linspace(-1.0, 2.0, p.numel(), dtype=p.dtype).cos() + i
        if i == 1:
            p.grad[:2] = torch.tensor([first, second])
        judged_step(optimizer)
    spoilt = [not math.isfinite(x) for x in (first, second)]
    assert p.isnan().tolist() == spoilt + [False] * (p.numel() - 2)


def take_overflowing_step(optimizer: HVAdam, size: float) -> None:
    """Take judged steps, the second with one huge number in the gradient; nothing is spoilt."""
    (p,) = optimizer.param_groups[0]["params"]
    for i in range(4):
        p.grad = torch.linspace(-1.0, 2.0, p.numel(), dtype=p.dtype).cos() + i
        if i == 1:
            p.grad[1] = -size
        judged_step(optimizer)
        assert p.isfinite().all()
    assert optimizer.state[p]["exp_avg_var"].isinf().nonzero().tolist() == [[1]]


def parameters(dtype: torch.dtype, *shapes: tuple[int, ...]) -> list[Tensor]:
    """Return parameters of the given shapes, the same every time."""
    generator = torch.Generator().manual_seed(1)
    return [
        torch.nn.Parameter(torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype))
        for shape in shapes
    ]


def train(optimizer: HVAdam, steps: int, seed: int = 0, scale: float = 1.0) -> None:
    """Take judged steps on a trend plus noise; every third step one parameter has no gradient."""
    generator = torch.Generator().manual_seed(seed)
    params = [p for group in optimizer.param_groups for p in group["params"]]
    trend = [torch.randn(p.shape, generator=generator, dtype=torch.float64) for p in params]
    for i in range(steps):
        for j, p in enumerate(params):
            noise = torch.randn(p.shape, generator=generator, dtype=torch.float64)
            p.grad = (
                None if (i + j) % 3 == 2 and j % 2 else (scale * (trend[j] + noise)).to(p.dtype)
            )
        judged_step(optimizer)
