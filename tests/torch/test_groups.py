"""Param groups: what builds them, what is refused, and groups that join later."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import pytest
import torch
from made_parameters import SCOPES, Build, Same, Train, feed, parameter
from torch import nn

from hvadam import HVAdam
from hvadam.core.scalars import INITIAL

if TYPE_CHECKING:
    from torch.testing._internal.common_optimizers import ErrorOptimizerInput


def test_errors_are_raised_as_declared(error_input: ErrorOptimizerInput) -> None:
    given = error_input.optimizer_error_input
    params = [parameter(2)] if given.params is None else given.params
    error: Any = error_input.error_type
    expect = pytest.warns if issubclass(error, Warning) else pytest.raises
    with expect(error, match=error_input.error_regex):
        HVAdam(params, **given.kwargs)


def test_every_argument_has_an_error_declared(declared_errors: list[ErrorOptimizerInput]) -> None:
    declared = {name for x in declared_errors for name in x.optimizer_error_input.kwargs}
    assert declared == set(inspect.signature(HVAdam).parameters) - {"params", "unexpected"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        *(
            (
                name,
                f"^HVAdam: {name} is an option of torch's optimizers; .* kernel= .*'native'.*out",
            )
            for name in ("foreach", "fused", "capturable", "differentiable")
        ),
        (
            "weight_decy",
            r"unexpected keyword argument 'weight_decy'; did you mean 'weight_decay'\?",
        ),
        ("shard_groups", "did you mean 'shard_group'"),
        ("amsgrad", "unexpected keyword argument 'amsgrad'$"),
    ],
)
def test_what_is_no_argument_is_refused_with_what_stands_in_its_place(
    name: str, message: str
) -> None:
    for value in (None, False, True):
        with pytest.raises(TypeError, match=message):
            HVAdam([parameter(2)], **{name: cast(Any, value)})


@pytest.mark.parametrize("value", [torch.tensor(0.5), "0.5", None, True], ids=repr)
@pytest.mark.parametrize(
    "name",
    ["betas[0]", "betas[1]", "eps", "gamma", "weight_decay", "hidden_scale", "restart_threshold"],
)
def test_all_but_lr_must_be_plain_numbers(name: str, value: Any) -> None:
    """A tensor too is refused: kernels read these at every step, and not all could take one."""
    betas = {"betas[0]": (value, 0.999), "betas[1]": (0.9, value)}
    options = {"betas": betas[name]} if name in betas else {name: value}
    with pytest.raises(TypeError, match=f"^HVAdam: {re.escape(name)} must be a number, got"):
        HVAdam([parameter(2)], **options)


def test_a_refused_group_leaves_the_optimizer_alone(build: Build, assert_same: Same) -> None:
    model = build()
    optimizer = HVAdam(model.parameters())
    before = copy.deepcopy(optimizer.state_dict())
    group = {"params": [parameter(2)], "lr": -1.0}
    with pytest.raises(ValueError, match="lr must be"):
        optimizer.add_param_group(group)
    assert_same(optimizer.state_dict(), before)
    assert set(group) == {"params", "lr"}


@pytest.mark.parametrize(
    "form",
    [
        lambda model: list(model.parameters()),
        lambda model: model.parameters(),  # a generator, used up once
        lambda model: tuple(model.parameters()),
        lambda model: (p for p in model.parameters()),
        lambda model: model.named_parameters(),
        lambda model: [{"params": model.parameters()}],
        lambda model: [{"params": model.named_parameters()}],
        lambda model: iter([{"params": list(model.parameters())}]),
    ],
    ids=["list", "generator", "tuple", "rvalue", "named", "group", "named group", "iterator"],
)
def test_parameters_come_in_any_form(
    form: Callable[[nn.Module], Any], build: Build, train: Train, assert_same: Same
) -> None:
    model, twin = build(), build()
    train(model, HVAdam(form(model)), range(5))
    train(twin, HVAdam(list(twin.parameters())), range(5))
    assert_same(model.state_dict(), twin.state_dict())


@pytest.mark.parametrize("scope", SCOPES)
def test_a_single_tensor_makes_a_group(scope: Any) -> None:
    weight, bias = parameter(3), parameter(2, seed=1)
    optimizer = HVAdam([{"params": weight, "lr": 0.5}, {"params": bias}], scope=scope)
    assert [group["params"] for group in optimizer.param_groups] == [[weight], [bias]]
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 1e-3]
    before = weight.clone(), bias.clone()
    feed(optimizer, range(2))
    assert not torch.equal(weight, before[0])
    assert not torch.equal(bias, before[1])


def test_groups_hold_every_default_and_their_own_values(build: Build) -> None:
    model = build()
    inner, outer = model.get_submodule("inner"), model.get_submodule("outer")
    optimizer = HVAdam(
        [
            {"params": inner.parameters(), "lr": 0.5, "weight_decay": 0.1, "bounds": (-1.0, 1.0)},
            {"params": outer.parameters()},
        ],
        lr=0.25,
    )
    first, second = optimizer.param_groups
    assert (first["lr"], first["weight_decay"], first["bounds"]) == (0.5, 0.1, (-1.0, 1.0))
    assert {name: second[name] for name in optimizer.defaults} == optimizer.defaults
    assert set(first) == set(second)
    assert "lr: 0.5" in repr(optimizer)


def test_names_are_kept(build: Build) -> None:
    model = build()
    optimizer = HVAdam(model.named_parameters(), scope="tensor")
    names = [name for name, _ in model.named_parameters()]
    assert optimizer.param_groups[0]["param_names"] == names
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == names


@pytest.mark.parametrize("scope", SCOPES)
def test_a_group_joins_mid_training(scope: Any, build: Build, train: Train) -> None:
    model = build()
    inner, outer = model.get_submodule("inner"), model.get_submodule("outer")
    optimizer = HVAdam(inner.parameters(), scope=scope)
    train(model, optimizer, range(5))
    optimizer.add_param_group({"params": outer.parameters(), "lr": 0.1})
    first, second = optimizer.param_groups
    assert second["lr"] == 0.1
    if scope == "tensor":
        assert "scalars" not in second
    elif scope == "group":
        assert second["scalars"].tolist() == list(INITIAL)
    else:
        assert first["scalars"][0].item() == 5.0
        assert torch.equal(second["scalars"], first["scalars"])
        assert second["scalars"] is not first["scalars"]

    before = [p.detach().clone() for p in outer.parameters()]
    train(model, optimizer, range(5, 8))
    assert all(not torch.equal(p, q) for p, q in zip(outer.parameters(), before, strict=True))
    assert {optimizer.state[p]["step"].item() for p in inner.parameters()} == {8.0}
    assert {optimizer.state[p]["step"].item() for p in outer.parameters()} == {3.0}
    if scope == "global":
        assert first["scalars"][0].item() == 8.0
        assert torch.equal(second["scalars"], first["scalars"])


def test_a_group_that_joins_without_gradients_changes_nothing(
    build: Build, train: Train, assert_same: Same
) -> None:
    model, twin = build(), build()
    optimizer, plain = HVAdam(model.parameters()), HVAdam(twin.parameters())
    train(model, optimizer, range(5))
    train(twin, plain, range(5))
    optimizer.add_param_group({"params": [parameter(7)]})
    train(model, optimizer, range(5, 10))
    train(twin, plain, range(5, 10))
    assert_same(model.state_dict(), twin.state_dict())
    for group in optimizer.param_groups:
        assert_same(group["scalars"], plain.param_groups[0]["scalars"])
