"""The native kernel's memory: every step looks at the tensors anew, and autograd is told."""

from __future__ import annotations

import copy
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from judge import judged_step
from native_twin import (
    STATES,
    assert_same,
    forced_step,
    memory_of,
    parameter,
    set_grads,
)
from torch import Tensor, nn

from hvadam import HVAdam
from hvadam.torch.kernels import native

pytestmark = pytest.mark.skipif(
    native.available() is not None, reason=f"no native kernel: {native.available()}"
)


# Pointers: every step looks at the tensors anew


class Model(nn.Module):
    """Parameters of a few shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.image = parameter(8, 3, 5, 5, seed=1)
        self.table = parameter(40, 30, seed=2)
        self.bias = parameter(301, seed=3)


def other_data(model: Model, optimizer: HVAdam) -> list[Tensor]:
    left = [p.data for p in model.parameters()]
    for p in model.parameters():
        p.data = p.data.clone()
    return left


def view_of_larger_data(model: Model, optimizer: HVAdam) -> list[Tensor]:
    left = [model.bias.data]
    around = torch.randn(400)
    around[50:351] = model.bias.data
    model.bias.data = around[50:351]
    return [*left, around[:50], around[351:]]


def other_layout(model: Model, optimizer: HVAdam) -> list[Tensor]:
    left = [model.table.data, model.image.data]
    model.table.data = model.table.data.t().contiguous().t()
    model.image.data = model.image.data.to(memory_format=torch.channels_last)
    return left


def there_and_back(model: Model, optimizer: HVAdam) -> list[Tensor]:
    left = [p.data for p in model.parameters()]
    model.to(torch.float64)
    left += [p.data for p in model.parameters()]
    model.to(torch.float32)
    return left


def channels_last(model: Model, optimizer: HVAdam) -> list[Tensor]:
    left = [model.image.data]
    model.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    return left


def shared_memory(model: Model, optimizer: HVAdam) -> list[Tensor]:
    model.share_memory()  # the same tensors, their memory elsewhere
    return []


def resized(model: Model, optimizer: HVAdam) -> list[Tensor]:
    for p in (model.bias, model.table):
        del optimizer.state[p]
        p.grad = None
        p.requires_grad_(False).resize_(3 * p.shape[0] + 1, *p.shape[1:]).normal_()
        p.requires_grad_(True)
    return []


def other_state(model: Model, optimizer: HVAdam) -> list[Tensor]:
    left: list[Tensor] = []
    for p in model.parameters():
        for key, tensor in optimizer.state[p].items():
            left.append(tensor)
            optimizer.state[p][key] = tensor.clone()
    return left


def state_of_another_layout(model: Model, optimizer: HVAdam) -> list[Tensor]:
    state, left = optimizer.state[model.table], []
    for key in ("exp_avg", "hidden", "exp_avg_var"):
        left.append(state[key])
        state[key] = state[key].t().contiguous().t()
    return left


def loaded_state(model: Model, optimizer: HVAdam) -> list[Tensor]:
    saved = copy.deepcopy(optimizer.state_dict())
    left = [x for p in model.parameters() for x in optimizer.state[p].values()]
    optimizer.load_state_dict(saved)
    return left


def copied(model: Model, optimizer: HVAdam) -> list[Tensor]:
    _, twin = copy.deepcopy((model, optimizer))
    return memory_of(twin)


def step_a_copy(model: Model, optimizer: HVAdam) -> list[Tensor]:
    twin_model, twin = copy.deepcopy((model, optimizer))
    before = [x.detach().clone() for x in memory_of(optimizer)]
    set_grads(list(twin_model.parameters()), 77)
    twin.step()
    assert_same(memory_of(optimizer), before)
    return memory_of(twin)


# What changes, and how many of the three tensors the native kernel takes afterwards. Where a
# parameter and its state are laid out in two ways, the portable kernels serve.
CHANGES: dict[Callable[[Model, HVAdam], list[Tensor]], int] = {
    other_data: 3,
    view_of_larger_data: 3,
    other_layout: 1,
    there_and_back: 3,
    channels_last: 2,
    shared_memory: 3,
    resized: 3,
    other_state: 3,
    state_of_another_layout: 2,
    loaded_state: 3,
    copied: 3,
    step_a_copy: 3,
}


@pytest.mark.parametrize(
    "state_dtype", ["float32", "int8", pytest.param("bfloat16", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("change", "by_native"), CHANGES.items(), ids=[x.__name__ for x in CHANGES]
)
def test_a_step_works_on_the_memory_of_now(
    change: Callable[[Model, HVAdam], list[Tensor]],
    by_native: int,
    state_dtype: Any,
    taken: list[list[bool]],
) -> None:
    model = Model()
    params = list(model.parameters())
    optimizer = HVAdam(params, kernel="native", lr=0.01, state_dtype=state_dtype)
    check = judged_step if state_dtype == "float32" else forced_step
    for step in range(2):
        set_grads(params, step)
        check(optimizer)
    left = change(model, optimizer)
    copies = [x.detach().clone() for x in left]
    for step in range(2, 4):
        set_grads(params, step)
        for p in params:  # laid out like its parameter
            p.grad = torch.empty_like(p).copy_(p.grad)  # pyright: ignore[reportArgumentType]
        moved = [p.detach().clone() for p in params]
        check(optimizer)
        assert sum(taken[-1]) == by_native
        assert all(bool((p != old).any()) for p, old in zip(params, moved, strict=True))
    assert_same(left, copies)


def test_gradients_may_come_in_another_layout_at_any_step(taken: list[list[bool]]) -> None:
    model = Model()
    params = [model.image, model.table]
    optimizer = HVAdam(params, kernel="native", lr=0.01)
    for step in range(6):
        set_grads(params, step)
        grads = [p.grad for p in params]
        if step % 2:
            params[0].grad = params[0].grad.to(memory_format=torch.channels_last)  # pyright: ignore[reportOptionalMemberAccess]
            params[1].grad = params[1].grad.t().contiguous().t()  # pyright: ignore[reportOptionalMemberAccess]
        kept = [x.clone() for p in params for x in [p.grad] if x is not None]
        judged_step(optimizer)
        assert taken[-1] == [step % 2 == 0] * 2
        assert_same([x for p in params for x in [p.grad] if x is not None], kept)
        del grads


@pytest.mark.slow
def test_no_step_works_on_freed_memory() -> None:
    """Run the test of memory under a C library that overwrites what is freed."""
    name = test_a_step_works_on_the_memory_of_now.__name__
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", name]
    done = subprocess.run(
        command,
        env={**os.environ, "MALLOC_PERTURB_": "165"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


# Version counters: autograd sees what was written


@pytest.mark.parametrize("state_dtype", STATES)
def test_every_write_to_a_parameter_is_counted(state_dtype: Any) -> None:
    params = [parameter(300), parameter(4, 5), parameter(7)]
    optimizer = HVAdam(params, kernel="native", state_dtype=state_dtype)
    for step in range(4):
        set_grads(params, step)
        params[2].grad = None
        versions = [p._version for p in params]
        grads = [(p.grad, p.grad._version) for p in params if p.grad is not None]
        optimizer.step()
        counted = [p._version - version for p, version in zip(params, versions, strict=True)]
        assert counted == [1, 1, 0]
        assert all(grad._version == version for grad, version in grads)


@pytest.mark.parametrize(
    "build",
    [torch.optim.Adam, lambda params: HVAdam(params, kernel="native")],
    ids=["Adam", "HVAdam"],
)
def test_a_backward_through_what_the_step_wrote_is_an_error(build: Any) -> None:
    weights = parameter(5)
    optimizer = build([weights])
    loss = weights.square().sum()
    set_grads([weights], 0)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# Allocations


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"state_dtype": "int8"},
        {"state_dtype": "bfloat16", "max_grad_norm": 1.0},
    ],
    ids=str,
)
def test_a_step_allocates_next_to_nothing(options: dict[str, Any]) -> None:
    params = [parameter(1_000_000), parameter(1000, 30)]
    optimizer = HVAdam(params, kernel="native", **options)
    set_grads(params, 0)
    optimizer.step()
    size = sum(p.numel() * p.element_size() for p in params)
    assert allocated(lambda: params[0].clone()) >= params[0].numel() * 4
    assert allocated(optimizer.step) < 0.01 * size


def allocated(work: Callable[[], Any]) -> int:
    """Bytes of torch memory taken, freed since or not."""
    gc.collect()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        work()
    return sum(max(event.self_cpu_memory_usage, 0) for event in profile.events() or ())
