"""The arithmetic on leaves agrees with the reference, step by step from the same state."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cases import VARIANTS, parameters
from jax_twin import Twin
from judge import judged_step
from torch import Tensor

# Low-bit and late state and gains of one's own are torch's, groups Optax's labels; a rate in a
# tensor is a number.
ELSEWHERE = ("custom gain", "group scope", "tensor lr")
OPTIONS = {
    name: options
    for name, options in VARIANTS.items()
    if name not in ELSEWHERE and not name.startswith("late")
}
# Few shapes, for JAX compiles every operation anew for each.
SHAPES = ((4, 3), (4, 3), (1,))
ALL_SHAPES = ((4, 3), (5,), (), (0, 2), (1,))


def run(
    options: dict[str, Any], dtype: torch.dtype, *, compiled: bool = False, scale: float = 1.0
) -> Twin:
    """Return a twin that took judged steps on a trend plus noise."""
    params = parameters(dtype, *(ALL_SHAPES if compiled else SHAPES))
    twin = Twin(params, compiled=compiled, **{"lr": 1e-2, **options})
    generator = torch.Generator().manual_seed(0)
    trend = [noise(p, generator) for p in params]
    for _ in range(8):
        for p, along in zip(params, trend, strict=True):
            p.grad = (scale * (along + noise(p, generator))).to(dtype)
        judged_step(twin)  # pyright: ignore[reportArgumentType]
    return twin


def noise(p: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(p.shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("variant", OPTIONS)
def test_agrees_with_the_reference(variant: str) -> None:
    run(OPTIONS[variant], torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize("variant", OPTIONS)
def test_agrees_with_the_reference_when_compiled(variant: str) -> None:
    run(OPTIONS[variant], torch.float32, compiled=True)


@pytest.mark.slow
@pytest.mark.parametrize("variant", [name for name in OPTIONS if not name.startswith("clipped")])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_agrees_with_the_reference_in_other_dtypes(variant: str, dtype: torch.dtype) -> None:
    run(OPTIONS[variant], dtype)


@pytest.mark.parametrize("preconditioner", ["hidden", "adam"])
def test_agrees_where_eps_is_large_enough_to_be_seen(preconditioner: str) -> None:
    run({"eps": 1e-2, "preconditioner": preconditioner}, torch.float32)


@pytest.mark.parametrize("rule", ["paper", "authors"])
def test_agrees_when_it_restarts(rule: str) -> None:
    """Gradients that turn around: v and m̂ part, and the vector starts anew."""
    params = parameters(torch.float32, *SHAPES)
    options: dict[str, Any] = {"restart_threshold": 0.6, "betas": (0.5, 0.6)}
    twin = Twin(params, restart_rule=rule, **options)
    generator = torch.Generator().manual_seed(0)
    for _ in range(12):
        for p in params:
            p.grad = noise(p, generator).float()
        judged_step(twin)  # pyright: ignore[reportArgumentType]
    assert twin.param_groups[0]["scalars"][6] > 0


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_agrees_on_gradients_of_any_size(scale: float) -> None:
    run({"eps": 1e-30, "betas": (0.7, 0.9)}, torch.float32, scale=scale)


def test_near_constant_gradients() -> None:
    """Where ‖m̂‖² + ‖v‖² - 2<m̂,v> would cancel: the alignment stays that of the reference."""
    (p,) = parameters(torch.float32, (40,))
    generator = torch.Generator().manual_seed(4)
    trend = noise(p, generator)
    twin = Twin([p], eps=1e-30)
    for _ in range(20):
        p.grad = (trend + 1e-4 * noise(p, generator)).float()
        judged_step(twin)  # pyright: ignore[reportArgumentType]
    assert twin.param_groups[0]["scalars"][3] > 0.99


def test_constant_gradients_count_as_equal() -> None:
    (p,) = parameters(torch.float32, (4, 3))
    p.grad = torch.randn(4, 3, generator=torch.Generator().manual_seed(3))
    twin = Twin([p])
    for i in range(30):
        twin.step()
        scalars = twin.param_groups[0]["scalars"]
        assert scalars[3] == 1.0
        assert scalars[4] == (1.0 if i else 0.0)
