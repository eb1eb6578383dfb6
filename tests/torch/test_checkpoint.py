"""State dicts and copies: training goes on from them bit for bit."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from made_parameters import SCOPES, Build, Same, Train, two_groups
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR

from hvadam import HVAdam

# Going on


@pytest.mark.parametrize("through_file", [False, True], ids=["in memory", "torch.save"])
def test_training_resumes_bit_for_bit(
    through_file: bool, options: dict[str, Any], build: Build, train: Train, assert_same: Same
) -> None:
    model = build()
    optimizer = HVAdam(model.parameters(), **options)
    train(model, optimizer, range(10))
    state = model.state_dict(), optimizer.state_dict()
    if through_file:
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        state = torch.load(file, weights_only=True)
    else:
        state = copy.deepcopy(state)
    train(model, optimizer, range(10, 20))

    other = build()
    other.load_state_dict(state[0])
    resumed = HVAdam(other.parameters(), **copy.deepcopy(options))
    resumed.load_state_dict(state[1])
    assert_same(resumed.state_dict(), state[1])
    train(other, resumed, range(10, 20))
    assert_same(other.state_dict(), model.state_dict())
    assert_same(resumed.state_dict(), optimizer.state_dict())


def test_training_resumes_with_its_scheduler(build: Build, train: Train, assert_same: Same) -> None:
    def start() -> tuple[nn.Module, HVAdam, OneCycleLR]:
        model = build()
        optimizer = HVAdam(model.parameters())
        return model, optimizer, OneCycleLR(optimizer, max_lr=0.01, total_steps=20)

    def run(parts: tuple[nn.Module, HVAdam, OneCycleLR], steps: Iterable[int]) -> None:
        for step in steps:
            train(parts[0], parts[1], [step])
            parts[2].step()

    one = start()
    run(one, range(8))
    state = copy.deepcopy([part.state_dict() for part in one])
    run(one, range(8, 16))
    two = start()
    for part, part_state in zip(two, state, strict=True):
        part.load_state_dict(part_state)
    run(two, range(8, 16))
    assert_same([part.state_dict() for part in two], [part.state_dict() for part in one])


@pytest.mark.parametrize("scope", SCOPES)
def test_a_parameter_without_state_stays_without(
    scope: Any, build: Build, train: Train, assert_same: Same
) -> None:
    model = build()
    last = list(model.parameters())[-1].requires_grad_(False)
    optimizer = HVAdam(two_groups(model), scope=scope)
    train(model, optimizer, range(5))
    other = copy.deepcopy(model)
    resumed = HVAdam(two_groups(other), scope=scope)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert not optimizer.state.get(last)
    for parts in ((model, optimizer), (other, resumed)):
        list(parts[0].parameters())[-1].requires_grad_(True)
        train(*parts, range(5, 10))
    assert_same(resumed.state_dict(), optimizer.state_dict())


def test_an_untrained_state_starts_over(build: Build, train: Train, assert_same: Same) -> None:
    model = build()
    untrained = copy.deepcopy((model.state_dict(), HVAdam(model.parameters()).state_dict()))
    optimizer = HVAdam(model.parameters())
    train(model, optimizer, range(5))
    expected = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    model.load_state_dict(untrained[0])
    optimizer.load_state_dict(untrained[1])
    assert not optimizer.state
    train(model, optimizer, range(5))
    assert_same((model.state_dict(), optimizer.state_dict()), expected)


def test_equal_runs_have_equal_state_dicts(
    options: dict[str, Any], build: Build, train: Train, assert_same: Same
) -> None:
    found = []
    for _ in range(2):
        model = build()
        optimizer = HVAdam(model.parameters(), **copy.deepcopy(options))
        train(model, optimizer, range(5))
        assert_same(optimizer.state_dict(), optimizer.state_dict())
        found.append(optimizer.state_dict())
    assert_same(found[0], found[1])


# Copies


def test_a_deep_copy_of_model_and_optimizer_goes_on_alike(
    options: dict[str, Any], build: Build, train: Train, assert_same: Same
) -> None:
    model = build()
    optimizer = HVAdam(model.parameters(), **options)
    train(model, optimizer, range(10))
    other_model, other = copy.deepcopy((model, optimizer))
    assert all(
        p is q
        for p, q in zip(other.param_groups[0]["params"], other_model.parameters(), strict=True)
    )
    before = copy.deepcopy(optimizer.state_dict())
    train(other_model, other, range(10, 20))
    assert_same(optimizer.state_dict(), before)  # nothing is shared
    train(model, optimizer, range(10, 20))
    assert_same(other_model.state_dict(), model.state_dict())
    assert_same(other.state_dict(), optimizer.state_dict())
    assert other.diagnostics() == optimizer.diagnostics()


@pytest.mark.parametrize("steps", [0, 10])
@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],
    ids=["deepcopy", "pickle"],
)
def test_a_copy_of_the_optimizer_alone_goes_on_alike(
    duplicate: Callable[[HVAdam], HVAdam], steps: int, options: dict[str, Any], assert_same: Same
) -> None:
    def feed(optimizer: HVAdam, steps: Iterable[int]) -> None:
        for step in steps:
            generator = torch.Generator().manual_seed(step)
            for p in optimizer.param_groups[0]["params"]:
                p.grad = p.detach() + torch.randn(p.shape, generator=generator)
            optimizer.step()

    params = [nn.Parameter(torch.ones(3, 4)), nn.Parameter(torch.tensor(-2.0))]
    optimizer = HVAdam(params, **options)
    feed(optimizer, range(steps))
    other = duplicate(optimizer)
    assert all(p is not q for p, q in zip(other.param_groups[0]["params"], params, strict=True))
    feed(optimizer, range(10, 20))
    feed(other, range(10, 20))
    assert_same(other.param_groups, optimizer.param_groups)
    assert_same(other.state_dict(), optimizer.state_dict())
