"""Gradients before a step: the norm, clipping and unscaling, autocast, what is refused."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from made_parameters import Build, Same
from torch import Tensor, nn

from hvadam import HVAdam
from hvadam.torch import gradients
from hvadam.torch.kernels import KERNELS


def test_the_norm_is_of_all_gradients_as_one_vector() -> None:
    grads = [torch.tensor([3.0, 0.0]), torch.tensor(4.0, dtype=torch.bfloat16), torch.zeros(0)]
    found = gradients.squared_norm(grads)
    assert found.dtype == torch.float64
    assert found == 25.0


@pytest.mark.parametrize("max_norm", [0.5, 5.0, 50.0])
@pytest.mark.parametrize("scale", [None, 4.0])
def test_scaling_is_unscaling_and_then_clip_grad_norm(max_norm: float, scale: float | None) -> None:
    p = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    p.grad = torch.tensor([3.0, 4.0], dtype=torch.float64)
    grad_scale = None if scale is None else torch.tensor(scale)
    factor = gradients.scaling(grad_scale, max_norm, gradients.squared_norm([p.grad]))
    expected = p.grad.clone()
    p.grad /= scale or 1.0
    nn.utils.clip_grad_norm_([p], max_norm)
    torch.testing.assert_close(expected * factor, p.grad)


@pytest.mark.parametrize("norm", [math.inf, math.nan])
def test_a_norm_that_is_no_number_spares_the_rest(norm: float) -> None:
    assert gradients.scaling(None, 1.0, torch.tensor(norm, dtype=torch.float64)) == 0.0


def test_without_clipping_no_norm_is_needed() -> None:
    assert gradients.scaling(torch.tensor(8.0), None, None) == 0.125


def test_sparse_gradients_are_refused() -> None:
    gradients.refuse_sparse([torch.ones(2)])
    with pytest.raises(RuntimeError, match="gradients must be dense"):
        gradients.refuse_sparse([torch.ones(2), torch.ones(2).to_sparse()])


# Clipping and unscaling inside the step: the same as outside, and gradients left alone.
AVAILABLE = ["auto", *(name for name, kernel in KERNELS.items() if kernel.available() is None)]


def parameters(dtype: torch.dtype = torch.float64) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((4, 3), (5,), ())
    return [nn.Parameter(torch.randn(s, generator=generator).to(dtype)) for s in shapes]


def set_gradients(params: list[nn.Parameter], step: int, scale: float = 1.0) -> None:
    generator = torch.Generator().manual_seed(step)
    for p in params:
        p.grad = (scale * torch.randn(p.shape, generator=generator)).to(p.dtype)


def everything(optimizer: HVAdam) -> list[Tensor]:
    params = [p for group in optimizer.param_groups for p in group["params"]]
    states = [x for p in params for x in optimizer.state[p].values()]
    scalars = [group["scalars"] for group in optimizer.param_groups]
    return [x.detach().clone() for x in (*params, *states, *scalars)]


@pytest.mark.parametrize("kernel", AVAILABLE)
@pytest.mark.parametrize("max_norm", [1e-30, 0.5, 1e9])
@pytest.mark.parametrize("options", [{}, {"maximize": True}], ids=str)
def test_equals_clip_grad_norm(kernel: Any, max_norm: float, options: dict[str, Any]) -> None:
    inside, outside = parameters(), parameters()
    ours = HVAdam(inside, lr=0.1, max_grad_norm=max_norm, kernel=kernel, **options)
    theirs = HVAdam(outside, lr=0.1, kernel=kernel, **options)
    for i in range(8):
        set_gradients(inside, i)
        set_gradients(outside, i)
        before = [p.grad.clone() for p in inside if p.grad is not None]
        ours.step()
        nn.utils.clip_grad_norm_(outside, max_norm)
        theirs.step()
        assert all(
            p.grad is not None and torch.equal(p.grad, g)
            for p, g in zip(inside, before, strict=True)
        )
        torch.testing.assert_close(inside, outside, rtol=1e-9, atol=1e-12)


def test_the_norm_spans_all_groups_and_only_what_has_a_gradient() -> None:
    a, b, c = parameters()
    optimizer = HVAdam([{"params": [a]}, {"params": [b, c]}], max_grad_norm=1.0, betas=(0.0, 0.999))
    a.grad, b.grad = torch.full_like(a, 3.0), torch.full_like(b, 4.0)
    optimizer.step()
    norm = math.sqrt(12 * 9 + 5 * 16)
    torch.testing.assert_close(optimizer.state[a]["exp_avg"], a.grad / norm, rtol=1e-6, atol=0)
    torch.testing.assert_close(optimizer.state[b]["exp_avg"], b.grad / norm, rtol=1e-6, atol=0)


@pytest.mark.parametrize("kernel", AVAILABLE)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_norm_that_is_not_finite_spares_the_others(kernel: Any, bad: float) -> None:
    a, b, c = parameters()
    optimizer = HVAdam([a, b, c], max_grad_norm=1.0, kernel=kernel)
    for i in range(4):
        set_gradients([a, b, c], i)
        if i == 2:
            assert b.grad is not None
            b.grad[1] = bad
        optimizer.step()
    assert a.isfinite().all()
    assert c.isfinite().all()
    assert b.isfinite().tolist() == [True, False, True, True, True]


@pytest.fixture(params=["by the step", "by the scaler"])
def unscaled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have gradients unscaled inside the step, as where a scaler cannot, or as it is by default."""
    if request.param == "by the step":
        monkeypatch.setattr(HVAdam, "_step_supports_amp_scaling", True)


@pytest.mark.usefixtures("unscaled")
@pytest.mark.parametrize("kernel", AVAILABLE)
@pytest.mark.parametrize("unscale_first", [False, True])
@pytest.mark.parametrize("max_norm", [None, 0.5])
def test_grad_scaler(kernel: Any, unscale_first: bool, max_norm: float | None) -> None:
    """A power-of-two scale changes no bit, whoever takes it off."""
    scaled, plain = parameters(torch.float32), parameters(torch.float32)
    ours = HVAdam(scaled, lr=0.1, kernel=kernel, max_grad_norm=max_norm)
    theirs = HVAdam(plain, lr=0.1, kernel=kernel, max_grad_norm=max_norm)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=1000)
    for i in range(6):
        set_gradients(scaled, i, scale=2.0**10)
        set_gradients(plain, i)
        scaler.scale(torch.zeros(()))  # makes the scale known to it
        if unscale_first:
            scaler.unscale_(ours)
        scaler.step(ours)
        scaler.update()
        theirs.step()
        assert not hasattr(ours, "grad_scale")
        for p, q in zip(scaled, plain, strict=True):
            torch.testing.assert_close(p, q, rtol=1e-5 if max_norm else 0, atol=0)


@pytest.mark.usefixtures("unscaled")
@pytest.mark.parametrize("kernel", AVAILABLE)
@pytest.mark.parametrize("options", [{}, {"state_dtype": "int8"}], ids=str)
def test_a_found_inf_leaves_everything_bit_for_bit(kernel: Any, options: dict[str, Any]) -> None:
    params = parameters(torch.float32)
    optimizer = HVAdam(params, lr=0.1, kernel=kernel, max_grad_norm=1.0, **options)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for i in range(4):
        set_gradients(params, i, scale=8.0)
        scaler.scale(torch.zeros(()))
        before = everything(optimizer) if i == 2 else []
        if i == 2:
            assert params[1].grad is not None
            params[1].grad[0] = math.inf
        scaler.step(optimizer)
        scaler.update()
        for x, y in zip(before, everything(optimizer) if i == 2 else [], strict=True):
            assert torch.equal(x, y)
    assert scaler.get_scale() == 4.0
    assert optimizer.diagnostics()["global"]["step"] == 3


# Training under autocast and with a gradient scaler.
def test_autocast(build: Build) -> None:
    model = build()
    optimizer = HVAdam(model.parameters(), lr=0.01)
    x = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
    y = x.sum(1, keepdim=True).expand(-1, 2)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(x)
            loss = nn.functional.mse_loss(out.float(), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert {optimizer.state[p]["hidden"].dtype for p in model.parameters()} == {torch.float32}


def test_a_grad_scaler_is_exact_and_skips_overflow(build: Build, assert_same: Same) -> None:
    model, twin = build(), build()
    optimizer, plain = HVAdam(model.parameters(), lr=0.01), HVAdam(twin.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=1000)
    x = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
    for step in range(6):
        overflow = step == 3
        optimizer.zero_grad()
        scaler.scale(model(x).square().mean()).backward()
        if overflow:
            first = next(model.parameters())
            assert first.grad is not None
            first.grad.view(-1)[0] = torch.inf
        before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        scaler.step(optimizer)
        scaler.update()
        if overflow:
            assert_same((model.state_dict(), optimizer.state_dict()), before)
            assert scaler.get_scale() == 2.0**9
            continue
        plain.zero_grad()
        twin(x).square().mean().backward()
        plain.step()
        assert_same(model.state_dict(), twin.state_dict())


@pytest.mark.parametrize("options", [{}, {"max_grad_norm": 1.0}], ids=str)
def test_under_a_scaler_gradients_and_hooks_are_as_with_adamw(options: dict[str, Any]) -> None:
    """Who clips or logs gradients finds them unscaled, and an overflow calls no step."""
    seen: dict[str, list[Any]] = {}
    for kind in (HVAdam, torch.optim.AdamW):
        w = nn.Parameter(torch.ones(3))
        optimizer = kind([w], **(options if kind is HVAdam else {}))
        assert not getattr(optimizer, "_step_supports_amp_scaling", False)
        mine = seen.setdefault(kind.__name__, [])
        optimizer.register_step_post_hook(lambda given, *_, mine=mine: mine.append("stepped"))
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        for factor in (1.0, torch.inf, 1.0):
            optimizer.zero_grad()
            scaler.scale(factor * w.sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            assert w.grad is not None
            mine += [*w.grad.tolist(), scaler.get_scale()]
    assert seen["HVAdam"] == seen["AdamW"]
    assert seen["HVAdam"].count("stepped") == 2


def test_float16_gradients_are_unscaled_by_the_step() -> None:
    """A scaler refuses to, as the quotient may vanish in float16; here it never is float16."""
    w = nn.Parameter(torch.ones(3, dtype=torch.float16))
    adamw, optimizer = torch.optim.AdamW([w]), HVAdam([w], betas=(0.0, 0.999))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    scaler.scale((2.0**-30 * w.float()).sum()).backward()
    with pytest.raises(ValueError, match="unscale FP16 gradients"):
        scaler.step(adamw)
    scaler.step(optimizer)
    assert optimizer.state[w]["exp_avg"].tolist() == [2.0**-30] * 3  # float16 ends at 2**-24
