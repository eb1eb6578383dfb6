"""Cases that every kernel is tried on: options of the step, parameters, a judged training run."""

from __future__ import annotations

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
    "custom gain": {"hidden_gain": lambda delta: 3.0 * delta},
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
    "late": {"hidden_step": "late", "hidden_gain": "linear"},
    "late, bounds": {"hidden_step": "late", "hidden_gain": "linear", "bounds": (-0.5, 0.5)},
    "late, coupled": {
        "hidden_step": "late",
        "hidden_gain": "linear",
        "weight_decay": 0.1,
        "weight_decay_mode": "coupled",
    },
    "late, adam": {"hidden_step": "late", "preconditioner": "adam", "weight_decay": 0.1},
}


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
