"""The arithmetic on leaves agrees with the reference, step by step from the same state."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from cases import FORMS, SPOILT, VARIANTS, parameters, take_overflowing_step, take_spoilt_step
from jax_twin import Twin
from judge import judged_step
from torch import Tensor

from hvadam.core.scalars import FIELDS

# Low-bit state and gains of one's own are torch's, groups Optax's labels; a rate in a
# tensor is a number.
ELSEWHERE = ("group scope", "tensor lr")
OPTIONS = {name: options for name, options in VARIANTS.items() if name not in ELSEWHERE}
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


@pytest.mark.filterwarnings("ignore:HVAdam. eps")
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


@pytest.mark.parametrize("gradients", SPOILT)
def test_what_is_not_finite_spoils_its_own_elements(gradients: str) -> None:
    twin: Any = Twin(parameters(torch.float32, (40,)))
    take_spoilt_step(twin, *SPOILT[gradients])


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_square_that_overflows_spoils_nothing(form: dict[str, Any]) -> None:
    twin: Any = Twin(parameters(torch.float64, (40,)), **form)
    take_overflowing_step(twin, 1e200)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_square_that_overflows_in_float32_makes_the_vector_hold(form: dict[str, Any]) -> None:
    """Sums of squares overflow with it there, which the reference, in float64, knows nothing of."""
    (p,) = parameters(torch.float32, (40,))
    twin = Twin([p], **form)
    for i in range(3):
        p.grad = torch.full((40,), 1.0 + i)
        p.grad[1] = 2.4e25 if i == 1 else 1.0
        twin.step()
    assert p.isfinite().all()
    assert twin.state[p]["exp_avg_var"].isinf().nonzero().tolist() == [[1]]
    assert twin.param_groups[0]["scalars"][FIELDS.index("holds")] >= 1


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


# One hidden vector over eight virtual devices: the same steps, two sums, nothing gathered.
PROGRAM = Path(__file__).parents[1] / "devices" / "sharded_steps.py"


@pytest.fixture(scope="module")
def ran() -> dict[str, Any]:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    made = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, env=environment
    )
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("way", ["auto", "explicit", "shard_map"])
def test_devices_agree_with_one(ran: dict[str, Any], way: str) -> None:
    found = ran["found"][way]
    assert found["far"] < 2e-7
    assert found["counters"] == [6, 5]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["auto", "explicit", "shard_map", "unchecked"])
def test_a_step_communicates_two_sums(ran: dict[str, Any], way: str) -> None:
    found = ran["found"][way]
    assert 1 <= found["all-reduce"] <= 2
    for name in ("all-gather", "all-to-all", "collective-permute", "reduce-scatter"):
        assert found[name] == 0, name


@pytest.mark.slow
@pytest.mark.parametrize("way", ["check_vma=True", "check_vma=False", "pmap"])
def test_pieces_without_an_axis_name_are_refused(ran: dict[str, Any], way: str) -> None:
    assert "axis_name=('data',) makes one hidden vector of all pieces" in ran["refused"][way]
