"""Low-bit state: what it costs, that it resumes bit for bit, converts, and refuses corruption."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hvadam import HVAdam
from hvadam.torch.kernels import KERNELS

AVAILABLE = ["auto", *(name for name, kernel in KERNELS.items() if kernel.available() is None)]
LOW_BIT = ["bfloat16", "int8"]


def parameters(dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((40, 30), (7,), (), (0, 3))
    return [nn.Parameter(torch.randn(s, generator=generator).to(dtype)) for s in shapes]


def train(optimizer: HVAdam, steps: int, first: int = 0) -> HVAdam:
    params = [p for group in optimizer.param_groups for p in group["params"]]
    for i in range(first, first + steps):
        generator = torch.Generator().manual_seed(1000 + i)
        for p in params:
            p.grad = (0.3 + torch.randn(p.shape, generator=generator)).to(p.dtype)
        optimizer.step()
    return optimizer


def contents(optimizer: HVAdam) -> list[Tensor]:
    params = [p for group in optimizer.param_groups for p in group["params"]]
    return [p.detach() for p in params] + [x for p in params for x in optimizer.state[p].values()]


def same(a: HVAdam, b: HVAdam) -> bool:
    return all(torch.equal(x, y) for x, y in zip(contents(a), contents(b), strict=True))


def build(state_dtype: str, **options: Any) -> HVAdam:
    return HVAdam(parameters(), lr=0.01, state_dtype=state_dtype, **options)  # pyright: ignore


def test_bytes_per_parameter() -> None:
    for state_dtype, most in (("float32", 12.0), ("bfloat16", 6.0), ("int8", 3.1)):
        p = nn.Parameter(torch.zeros(100, 1000))
        p.grad = torch.ones_like(p)
        optimizer = HVAdam([p], state_dtype=state_dtype)  # pyright: ignore
        optimizer.step()
        kept = [x for key, x in optimizer.state[p].items() if key != "step"]
        assert sum(x.nbytes for x in kept) <= most * p.numel()


@pytest.mark.parametrize("kernel", AVAILABLE)
@pytest.mark.parametrize("state_dtype", LOW_BIT)
def test_resumes_bit_for_bit(kernel: str, state_dtype: str) -> None:
    optimizer = train(build(state_dtype, kernel=kernel, rounding_seed=7), 5)
    buffer = io.BytesIO()
    params = [p.detach().clone() for p in optimizer.param_groups[0]["params"]]
    torch.save(optimizer.state_dict(), buffer)
    buffer.seek(0)
    resumed = HVAdam([nn.Parameter(p) for p in params], kernel=kernel, state_dtype=state_dtype)  # pyright: ignore
    with pytest.warns(UserWarning, match="changed .*: rounding_seed from 0 to 7"):
        resumed.load_state_dict(torch.load(buffer, weights_only=True))
    twin = copy.deepcopy(optimizer)
    assert same(train(resumed, 5, 5), train(optimizer, 5, 5))
    assert same(train(twin, 5, 5), optimizer)


@pytest.mark.parametrize("state_dtype", LOW_BIT)
def test_the_seed_alone_decides_the_rounding(state_dtype: str) -> None:
    assert same(train(build(state_dtype), 4), train(build(state_dtype), 4))
    assert not same(train(build(state_dtype), 4), train(build(state_dtype, rounding_seed=1), 4))


@pytest.mark.parametrize("kernel", AVAILABLE)
@pytest.mark.parametrize("state_dtype", LOW_BIT)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_follows_full_precision(kernel: str, state_dtype: str, dtype: torch.dtype) -> None:
    """On a quadratic, where the state's rounding is the only difference, it gets as far."""
    ends: dict[str, float] = {}
    for kept in ("float32", state_dtype):
        p = nn.Parameter(torch.linspace(-1, 1, 600).to(dtype))
        optimizer = HVAdam([p], lr=0.02, state_dtype=kept, kernel=kernel)  # pyright: ignore
        for i in range(60):
            generator = torch.Generator().manual_seed(i)
            noise = 0.1 * torch.randn(600, generator=generator)
            p.grad = (p.detach().float() + noise).to(dtype)
            optimizer.step()
        ends[kept] = p.detach().float().square().mean().item()
    assert ends[state_dtype] < 0.05
    assert ends["float32"] < 0.05


@pytest.mark.parametrize("state_dtype", LOW_BIT)
def test_a_bad_gradient_harms_its_own_element_only(state_dtype: str) -> None:
    for kernel in AVAILABLE:
        p = nn.Parameter(torch.ones(600))
        optimizer = HVAdam([p], state_dtype=state_dtype, kernel=kernel)  # pyright: ignore
        for i in range(6):
            p.grad = torch.randn(600, generator=torch.Generator().manual_seed(i))
            if i == 3:
                p.grad[300] = torch.nan
            optimizer.step()
        assert p.isfinite().sum() == 599


@pytest.mark.parametrize("source", ["float32", *LOW_BIT])
@pytest.mark.parametrize("target", ["float32", *LOW_BIT])
def test_checkpoints_convert(source: str, target: str) -> None:
    """To more bits exactly, to fewer by rounding to nearest; training goes on."""
    optimizer = train(build(source), 6)
    other = build(target)
    other.load_state_dict(optimizer.state_dict())
    assert other.param_groups[0]["state_dtype"] == target
    full, back = build("float32"), build("float32")
    full.load_state_dict(optimizer.state_dict())
    back.load_state_dict(other.state_dict())
    for ours, theirs in zip(
        full.param_groups[0]["params"], back.param_groups[0]["params"], strict=True
    ):
        for key in ("exp_avg", "hidden", "exp_avg_var"):
            x, y = full.state[ours][key], back.state[theirs][key]
            slack = {"float32": 0.0, "bfloat16": 2.0**-8, "int8": 0.01}[target]
            if "int8" in (target,) and x.numel():
                slack = 0.01 * x.abs().max().item()
                torch.testing.assert_close(x, y, rtol=0.02, atol=slack)
            else:
                torch.testing.assert_close(x, y, rtol=slack, atol=0)
    assert torch.equal(other.param_groups[0]["scalars"], optimizer.param_groups[0]["scalars"])
    train(other, 3, 6)
    assert all(p.isfinite().all() for p in other.param_groups[0]["params"])


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_corrupt_scales_are_refused(bad: float) -> None:
    optimizer = train(build("int8"), 3)
    state_dict = copy.deepcopy(optimizer.state_dict())
    state_dict["state"][0]["hidden_scales"][2] = bad
    fresh = train(build("int8"), 1)
    before = copy.deepcopy(fresh)
    with pytest.raises(ValueError, match="scales of hidden must be 5 finite numbers above 0"):
        fresh.load_state_dict(state_dict)
    assert same(fresh, before)


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("exp_avg", lambda x: x.float()),
        ("exp_avg_scales", lambda x: x[:-1]),
        ("exp_avg_var", lambda x: x.view(torch.int8)),
    ],
)
def test_other_layouts_are_refused(key: str, change: Any) -> None:
    state_dict = copy.deepcopy(train(build("int8"), 3).state_dict())
    state_dict["state"][0][key] = change(state_dict["state"][0][key])
    with pytest.raises(ValueError, match="HVAdam: "):
        build("int8").load_state_dict(state_dict)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64], ids=str)
def test_wide_parameters_are_refused_by_name(dtype: torch.dtype) -> None:
    with pytest.raises(TypeError, match="is for parameters of float32 or less, got torch"):
        HVAdam([torch.zeros(3, dtype=dtype)], state_dtype="int8")
