"""Small parameters and gradients made from seeds, and the types of the fixtures."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from hvadam import HVAdam
from hvadam.torch import kernels

AVAILABLE = [name for name, kernel in kernels.KERNELS.items() if kernel.available() is None]
KERNELS = ["auto", *AVAILABLE]
SCOPES = ["global", "group", "tensor"]

Build = Callable[..., nn.Module]
Train = Callable[[nn.Module, torch.optim.Optimizer, Iterable[int]], list[float]]
Same = Callable[[Any, Any], None]


def parameter(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> nn.Parameter:
    """Return a parameter of normal numbers, the same for the same shape and seed."""
    generator = torch.Generator().manual_seed(seed)
    return nn.Parameter(torch.randn(shape, dtype=dtype, generator=generator))


def set_grads(params: Iterable[Tensor], step: int) -> None:
    """Set gradients with a trend and some noise, the same for the same shapes and step."""
    generator = torch.Generator().manual_seed(1000 + step)
    for p in params:
        noise = torch.randn(p.shape, dtype=torch.complex128, generator=generator)
        p.grad = (
            (1.0 + 0.5j + noise).to(p.dtype) if p.is_complex() else (1.0 + noise.real).to(p.dtype)
        )


def feed(optimizer: torch.optim.Optimizer, steps: Iterable[int]) -> None:
    """Step with the gradients of ``set_grads`` for every parameter of an optimizer."""
    for step in steps:
        set_grads([p for group in optimizer.param_groups for p in group["params"]], step)
        optimizer.step()


# Small trained optimizers and their state dicts.
TENSORS = ("exp_avg", "hidden", "exp_avg_var")

StateDict = dict[str, Any]


def two_groups(model: nn.Module) -> list[dict[str, Any]]:
    """Return the first parameter and the others as two groups, the second with weight decay."""
    first, *others = model.parameters()
    return [{"params": [first]}, {"params": others, "weight_decay": 0.1}]


def trained(build: Build, train: Train, **options: Any) -> tuple[nn.Module, HVAdam]:
    """Return a model and its optimizer after five steps."""
    model = build()
    optimizer = HVAdam(two_groups(model), **options)
    train(model, optimizer, range(5))
    return model, optimizer


def saved(build: Build, train: Train, **options: Any) -> StateDict:
    """Return a copy of the state dict of an optimizer after five steps."""
    return copy.deepcopy(trained(build, train, **options)[1].state_dict())
