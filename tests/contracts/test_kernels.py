"""Every kernel agrees with the reference, step by step from the same state, per dtype."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from cases import (
    DTYPES,
    FORMS,
    OVERFLOWING,
    SPOILT,
    VARIANTS,
    parameters,
    take_overflowing_step,
    take_spoilt_step,
    train,
)
from hypothesis import given
from hypothesis import strategies as st
from judge import judged_step

from hvadam import HVAdam
from hvadam.torch import storage
from hvadam.torch.kernels import KERNELS

AVAILABLE = [name for name, kernel in KERNELS.items() if kernel.available() is None]


@pytest.mark.parametrize("kernel", AVAILABLE)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_agrees_with_the_reference(kernel: Any, variant: str, dtype: torch.dtype) -> None:
    a, b, c, d, e = parameters(dtype, (4, 3), (5,), (), (0, 2), (1,))
    optimizer = HVAdam(
        [{"params": [a, b]}, {"params": [c, d, e], "lr": 3e-3}],
        kernel=kernel,
        **{"lr": 1e-2, **VARIANTS[variant]},
    )
    train(optimizer, 12)


@pytest.mark.parametrize("kernel", AVAILABLE)
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_near_constant_gradients(kernel: Any, scale: float, dtype: torch.dtype) -> None:
    """Where ‖m̂‖² + ‖v‖² - 2<m̂,v> would cancel: the alignment stays that of the reference."""
    (p,) = parameters(dtype, (40,))
    trend = torch.randn(40, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    optimizer = HVAdam([p], kernel=kernel, eps=1e-30)
    generator = torch.Generator().manual_seed(4)
    for _ in range(40):
        noise = 1e-4 * torch.randn(40, generator=generator, dtype=torch.float64)
        p.grad = (scale * (trend + noise)).to(dtype)
        judged_step(optimizer)
    assert optimizer.diagnostics()["global"]["alignment"] > 0.99


@pytest.mark.parametrize("kernel", AVAILABLE)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_constant_gradients_count_as_equal(kernel: Any, dtype: torch.dtype) -> None:
    (p,) = parameters(dtype, (1000,))
    p.grad = torch.randn(1000, generator=torch.Generator().manual_seed(3)).to(dtype)
    optimizer = HVAdam([p], kernel=kernel)
    for i in range(60):
        optimizer.step()
        found = optimizer.diagnostics()["global"]
        assert found["alignment"] == 1.0
        assert found["mix"] == (1.0 if i else 0.0)


@pytest.mark.parametrize("kernel", AVAILABLE)
def test_large_tensors_and_odd_layouts(kernel: Any) -> None:
    """Tensors beyond one chunk, transposed, channels-last and with gradients laid out otherwise."""
    big, wide, image, strided = parameters(
        torch.float32, (150_001,), (300, 500), (2, 3, 40, 50), (64, 64)
    )
    wide = torch.nn.Parameter(wide.detach().t())
    image = torch.nn.Parameter(image.detach().to(memory_format=torch.channels_last))
    strided = torch.nn.Parameter(strided.detach()[:, ::2])
    optimizer = HVAdam([big, wide, image, strided], kernel=kernel)
    generator = torch.Generator().manual_seed(5)
    for _ in range(3):
        for p in (big, wide, image, strided):
            p.grad = torch.randn(p.shape, generator=generator)
        judged_step(optimizer)


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    shapes = draw(
        st.lists(st.lists(st.integers(0, 5), max_size=3).map(tuple), min_size=1, max_size=5)
    )
    return {
        "shapes": shapes,
        "dtype": draw(st.sampled_from(DTYPES)),
        "scale": 10.0 ** draw(st.integers(-12, 12)),
        "groups": draw(st.lists(st.integers(0, 2), min_size=len(shapes), max_size=len(shapes))),
        "missing": draw(st.integers(0, 2**15 - 1)),
        "seed": draw(st.integers(0, 999)),
        "scope": draw(st.sampled_from(["global", "group", "tensor"])),
        "rule": draw(st.sampled_from(["paper", "authors"])),
    }


@pytest.mark.parametrize("kernel", AVAILABLE)
@given(problem=problems())
def test_agrees_on_drawn_problems(kernel: Any, problem: dict[str, Any]) -> None:
    dtype = problem["dtype"]
    scale = problem["scale"] if dtype != torch.float16 else min(problem["scale"], 1e3)
    params = parameters(dtype, *problem["shapes"])
    groups = [
        {"params": [p for p, g in zip(params, problem["groups"], strict=True) if g == i]}
        for i in range(3)
    ]
    optimizer = HVAdam(
        [group for group in groups if group["params"]],
        kernel=kernel,
        scope=problem["scope"],
        restart_rule=problem["rule"],
        betas=(0.7, 0.9),
    )
    generator = torch.Generator().manual_seed(problem["seed"])
    present = itertools.cycle([problem["missing"] >> i & 1 == 0 for i in range(15)])
    for _ in range(5):
        for p in params:
            grad = scale * torch.randn(p.shape, generator=generator, dtype=torch.float64)
            p.grad = grad.to(dtype) if next(present) else None
        judged_step(optimizer)


@pytest.mark.parametrize("kernel", AVAILABLE)
@pytest.mark.parametrize("gradients", SPOILT)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_what_is_not_finite_spoils_its_own_elements(
    kernel: Any, gradients: str, dtype: torch.dtype
) -> None:
    take_spoilt_step(HVAdam(parameters(dtype, (40,)), kernel=kernel), *SPOILT[gradients])


@pytest.mark.parametrize("kernel", AVAILABLE)
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize(("dtype", "size"), OVERFLOWING, ids=str)
def test_a_square_that_overflows_spoils_nothing(
    kernel: Any, form: dict[str, Any], dtype: torch.dtype, size: float
) -> None:
    take_overflowing_step(HVAdam(parameters(dtype, (40,)), kernel=kernel, **form), size)


# Sizes of gradients: in float32 squares overflow from 1.8e19 on, in float64 from 1.3e154 on, and
# there the dots do too.
SIZES = {
    torch.float32: st.integers(-12, 36),
    torch.float64: st.integers(-12, 140) | st.integers(170, 290),
}
SPECIAL = st.sampled_from([0.0, float("inf"), -float("inf"), float("nan")])


@pytest.mark.parametrize("kernel", AVAILABLE)
@given(data=st.data())
def test_agrees_on_extreme_gradients(kernel: Any, data: st.DataObject) -> None:
    """Numbers of any size, alone or among ordinary ones, and now and then none at all."""
    dtype = data.draw(st.sampled_from(list(SIZES)))
    p, other = parameters(dtype, (12,), (1,))
    optimizer = HVAdam(
        [p, other],  # one parameter alone is refused if failed examples keep many optimizers alive
        kernel=kernel,
        betas=data.draw(st.tuples(st.sampled_from([0.0, 0.7]), st.sampled_from([0.0, 0.9]))),
        gamma=data.draw(st.sampled_from([0.0, 0.5])),
        preconditioner=data.draw(st.sampled_from(["hidden", "hidden", "adam"])),
    )
    for i in range(3):
        generator = torch.Generator().manual_seed(i)
        sizes = data.draw(st.lists(st.just(0) | SIZES[dtype], min_size=12, max_size=12))
        scale = torch.tensor([10.0**x for x in sizes], dtype=torch.float64)
        p.grad = (scale * torch.randn(12, generator=generator, dtype=torch.float64)).to(dtype)
        for at, value in data.draw(st.dictionaries(st.integers(0, 99), SPECIAL)).items():
            if at < 12:
                p.grad[at] = value
        judged_step(optimizer)


@pytest.mark.parametrize("state_dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("kernel", AVAILABLE)
def test_without_averaging_nothing_is_left_of_the_last_gradient(
    kernel: Any, state_dtype: Any
) -> None:
    """However small the next one is beside it."""
    p, other = parameters(torch.float32, (40,), (1,))
    optimizer = HVAdam(
        [p, other],
        betas=(0.0, 0.999),
        kernel=kernel,
        state_dtype=state_dtype,
    )
    for scale in (1e8, 1.0):
        p.grad = torch.full((40,), scale)
        optimizer.step()
    m, v = (
        storage.decode(optimizer.state[p][name], optimizer.state[p].get(storage.SCALES[name]))
        for name in ("exp_avg", "hidden")
    )
    quantum = 2.0**-15 + 1 / 127 if state_dtype == "int8" else 0.0  # its scale has 16 bits
    torch.testing.assert_close(m, torch.ones(40), rtol=2e-7, atol=quantum)
    assert v.abs().max() <= 1.0 + quantum  # the nearest point to 0 is no longer than m


@pytest.mark.parametrize("beta1", [0.0, 0.3, 0.49, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kernel", AVAILABLE)
def test_gradients_that_leap(kernel: Any, dtype: torch.dtype, beta1: float) -> None:
    params = parameters(dtype, (5, 7), (3,))
    optimizer = HVAdam(params, betas=(beta1, 0.9), kernel=kernel)
    for scale in (1e8, 1.0, 1e-6, 1e3):
        train(optimizer, 1, seed=int(scale), scale=scale)
