"""The step behaves as that of torch's own optimizers: what it reads, writes and returns."""

from __future__ import annotations

import copy
import gc
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from made_parameters import KERNELS, SCOPES, Build, Same, Train, feed, parameter, set_grads
from torch import Tensor, nn
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

import hvadam
from hvadam import HVAdam
from hvadam.torch.kernels import native


def test_the_loss_goes_the_right_way(options: dict[str, Any], build: Build, train: Train) -> None:
    model = build()
    losses = train(model, HVAdam(model.parameters(), **options), range(60))
    start, end = sum(losses[:10]), sum(losses[-10:])
    assert end > start if options.get("maximize") else end < start


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gradient_is_never_written(kernel: Any, options: dict[str, Any]) -> None:
    options["kernel"] = kernel
    params = [
        parameter(3, 4, dtype=torch.float32),
        parameter(5),
        parameter(2, dtype=torch.bfloat16),
    ]
    optimizer = HVAdam(params, **options)
    for step in range(3):
        set_grads(params, step)
        grads = [p.grad for p in params]
        kept = [(g, g.clone(), g._version) for g in grads if g is not None]
        optimizer.step()
        for p, (g, value, version) in zip(params, kept, strict=True):
            assert p.grad is g
            assert g._version == version
            assert torch.equal(g, value)


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_gradient_is_kept_alive(kernel: Any) -> None:
    """After ``zero_grad`` the memory is free for the next forward pass."""
    p = parameter(3)
    optimizer = HVAdam([p], kernel=kernel)
    set_grads([p], 0)
    assert p.grad is not None
    grad = weakref.ref(p.grad)
    optimizer.step()
    optimizer.zero_grad()
    gc.collect()
    assert grad() is None


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad(set_to_none: bool) -> None:
    params = [parameter(3), parameter(2, seed=1)]
    optimizer = HVAdam(params)
    set_grads(params[:1], 0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=set_to_none)
    assert params[1].grad is None
    if set_to_none:
        assert params[0].grad is None
    else:
        assert params[0].grad is not None
        assert not params[0].grad.any()
        before = params[0].clone()
        optimizer.step()  # a zero gradient is a gradient: the average moves on
        assert not torch.equal(params[0], before)


def test_the_closure_runs_once_with_grad_and_its_loss_is_returned() -> None:
    p = parameter(3)
    optimizer = HVAdam([p])
    calls: list[bool] = []
    before = p.detach().clone()

    def closure() -> Tensor:
        calls.append(torch.is_grad_enabled())
        optimizer.zero_grad()
        loss = p.square().sum()
        loss.backward()
        return loss

    with torch.no_grad():
        loss = optimizer.step(closure)
    assert calls == [True]
    assert loss.item() == before.square().sum().item()
    assert p.grad is not None
    assert torch.equal(p.grad, 2 * before)
    assert not torch.equal(p, before)
    assert p.requires_grad
    assert p.is_leaf
    assert optimizer.step() is None


@pytest.mark.parametrize("scope", SCOPES)
def test_a_step_without_gradients_does_nothing(
    scope: Any, build: Build, train: Train, assert_same: Same
) -> None:
    model = build()
    optimizer = HVAdam(model.parameters(), scope=scope, weight_decay=0.1, bounds=(-0.1, 0.1))
    assert optimizer.step() is None
    assert not optimizer.state
    train(model, optimizer, range(3))
    optimizer.zero_grad()
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    optimizer.step()
    assert_same((model.state_dict(), optimizer.state_dict()), before)


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_rate_no_move(kernel: Any, options: dict[str, Any]) -> None:
    """lr=0 leaves parameters alone: no decay, and none outside the box is moved onto it."""
    options["kernel"] = kernel
    options["lr"] = (
        torch.zeros_like(options["lr"]) if isinstance(options.get("lr"), Tensor) else 0.0
    )
    options |= {"weight_decay": 0.1, "bounds": (-0.01, 0.01)}
    params = [parameter(5), parameter(5, dtype=torch.float32), parameter(5, dtype=torch.bfloat16)]
    before = [p.detach().clone() for p in params]
    optimizer = HVAdam(params, **options)
    feed(optimizer, range(3))
    assert all(torch.equal(p, q) for p, q in zip(params, before, strict=True))
    assert [optimizer.state[p]["step"].item() for p in params] == [3.0, 3.0, 3.0]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state:UserWarning")
def test_a_sparse_gradient_is_refused_before_anything_moves(
    layout: str, kernel: Any, scope: Any, assert_same: Same
) -> None:
    dense = parameter(3)
    grad = torch.eye(3, 2, dtype=torch.float64)
    if layout == "coo":
        table = parameter(3, 2, seed=1)
        grad = grad.to_sparse_coo()
    else:  # torch lets only a parameter of that layout have such a gradient
        grad = grad.to_sparse_csr()
        table = nn.Parameter(grad.clone())
    optimizer = HVAdam([dense, table], kernel=kernel, scope=scope)
    for step in range(2):
        set_grads([dense], step)
        optimizer.step()
    before = copy.deepcopy((dense, optimizer.state_dict()))
    table_before = table.detach().to_dense().clone()
    set_grads([dense], 2)
    table.grad = grad
    with pytest.raises(
        RuntimeError, match=r"^HVAdam: gradients must be dense.*torch\.optim\.SparseAdam"
    ):
        optimizer.step()
    assert_same((dense, optimizer.state_dict()), before)
    assert torch.equal(table.to_dense(), table_before)
    assert table not in optimizer.state


def test_nothing_is_printed(
    options: dict[str, Any], build: Build, train: Train, capfd: pytest.CaptureFixture[str]
) -> None:
    model = build()
    optimizer = HVAdam(model.parameters(), **options)
    train(model, optimizer, range(3))
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    optimizer.diagnostics()
    assert tuple(capfd.readouterr()) == ("", "")


def test_step_hooks_run_around_the_step_global_ones_first(build: Build, train: Train) -> None:
    model = build()
    optimizer = HVAdam(model.parameters())
    seen: list[tuple[str, int]] = []

    def hook(name: str) -> Callable[..., None]:
        def record(given: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
            assert given is optimizer
            seen.append((name, len(optimizer.state)))

        return record

    handles = [
        optimizer.register_step_pre_hook(hook("pre")),
        optimizer.register_step_post_hook(hook("post")),
        register_optimizer_step_pre_hook(hook("global pre")),
        register_optimizer_step_post_hook(hook("global post")),
    ]
    try:
        train(model, optimizer, [0])
    finally:
        for handle in handles:
            handle.remove()
    count = len(list(model.parameters()))
    assert seen[:2] == [("global pre", 0), ("pre", 0)]
    assert sorted(seen[2:]) == [("global post", count), ("post", count)]
    train(model, optimizer, [1])
    assert len(seen) == 4


def test_a_step_pre_hook_may_replace_the_arguments() -> None:
    p = parameter(2)
    optimizer = HVAdam([p])
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 42.0), {}))
    assert optimizer.step() == 42.0


# Who takes part


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_parameter_that_never_has_a_gradient_is_as_if_absent(
    kernel: Any, options: dict[str, Any], assert_same: Same
) -> None:
    options["kernel"] = kernel
    params = [parameter(3), parameter(2, seed=1)]
    twins = copy.deepcopy(params)
    idle = parameter(4, seed=2)
    before = idle.detach().clone()
    optimizer = HVAdam([params[0], idle, params[1]], **options)
    plain = HVAdam(twins, **copy.deepcopy(options))
    for step in range(3):
        set_grads(params, step)
        set_grads(twins, step)
        optimizer.step()
        plain.step()
    assert_same(params, twins)
    assert_same(idle.detach(), before)
    assert not optimizer.state.get(idle)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_freezing_and_joining_late(kernel: Any, scope: Any, assert_same: Same) -> None:
    """Each tensor counts its own steps; a frozen one rests with its state."""
    early, late = parameter(3), parameter(2, seed=1)
    optimizer = HVAdam([early, late], lr=0.01, kernel=kernel, scope=scope)
    for step in range(3):
        set_grads([early], step)
        optimizer.step()
    assert late not in optimizer.state

    early.requires_grad_(False)
    early.grad = None
    rest = copy.deepcopy((early, optimizer.state[early]))
    for step in range(3, 5):
        set_grads([late], step)
        optimizer.step()
    assert_same((early, optimizer.state[early]), (rest[0].requires_grad_(False), rest[1]))
    assert optimizer.state[late]["step"].item() == 2.0

    early.requires_grad_(True)
    feed(optimizer, range(5, 7))
    assert [optimizer.state[p]["step"].item() for p in (early, late)] == [5.0, 4.0]
    scalars = (
        [optimizer.state[p]["scalars"] for p in (early, late)]
        if scope == "tensor"
        else [optimizer.param_groups[0]["scalars"]]
    )
    assert [s[0].item() for s in scalars] == ([5.0, 4.0] if scope == "tensor" else [7.0])


@pytest.mark.skipif(
    native.available() is not None, reason=f"no native kernel: {native.available()}"
)
def test_a_step_is_a_short_walk() -> None:
    """Who reads what happens in a step passes at most 45 functions."""
    params = [torch.nn.Parameter(torch.ones(5, 3)) for _ in range(3)]
    optimizer = HVAdam(params, kernel="native")
    for p in params:
        p.grad = torch.ones_like(p)
    optimizer.step()
    passed: set[tuple[str, str]] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and not code.co_name.startswith("<"):
            passed.add((code.co_filename, code.co_qualname))

    sys.setprofile(note)
    try:
        optimizer.step()
    finally:
        sys.setprofile(None)
    passed = {
        (file, name)
        for file, name in passed
        if Path(file).is_relative_to(Path(hvadam.__file__).parent)
    }
    assert 10 < len(passed) <= 45
