"""Param groups: what builds them, what is refused, and groups that join later."""

from __future__ import annotations

import copy
import cProfile
import inspect
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
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
        (
            "amsgrad",
            "^HVAdam: amsgrad is an option of torch's Adam and AdamW, .* Leave amsgrad out",
        ),
        ("hidden_step", "^HVAdam: hidden_step is no option any more: .* Leave hidden_step out"),
        ("learning_rate", "^HVAdam: .* argument 'learning_rate'; here it is 'lr'"),
        ("beta1", "'beta1'; here it is 'betas'"),
        ("sparsity", "unexpected keyword argument 'sparsity'$"),
    ],
)
def test_what_is_no_argument_is_refused_with_what_stands_in_its_place(
    name: str, message: str
) -> None:
    for value in (None, False, True):
        with pytest.raises(TypeError, match=message):
            HVAdam([parameter(2)], **{name: cast(Any, value)})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *(("weight_decy", "weight_decay"), ("weightdecay", "weight_decay"), ("gama", "gamma")),
        *(("beta", "betas"), ("Lr", "lr"), ("learning_rate", "lr"), ("b2", "betas")),
        ("max_gradient_norm", "max_grad_norm"),
    ],
)
def test_a_misspelt_key_of_a_group_is_refused_with_its_nearest_name(name: str, meant: str) -> None:
    optimizer = HVAdam([parameter(2)])
    with pytest.raises(ValueError, match=f"^HVAdam: .*{name!r}; did you mean {meant!r}\\?"):
        optimizer.add_param_group({"params": [parameter(3)], name: 0.1})
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize(
    "name",
    [
        *("name", "lr_scale", "lr_mult", "initial_lr", "max_lr", "layer_id", "kernel_size", "wd"),
        *("no_weight_decay", "weight_decay_mult", "hidden_size", "use_muon", "group_name", 3),
    ],
)
def test_keys_of_the_users_own_stay_in_their_group(name: Any) -> None:
    optimizer = HVAdam([{"params": [parameter(2)], name: 0.1}])
    assert optimizer.param_groups[0][name] == 0.1


def test_groups_of_adamw_are_taken_with_a_word_on_its_eps() -> None:
    adamw = torch.optim.AdamW([parameter(2)])
    with pytest.warns(UserWarning, match=r"^HVAdam: eps=1e-08 acts like 3e-03 in .* AdamW's eps"):
        optimizer = HVAdam(adamw.param_groups)
    assert optimizer.param_groups[0]["weight_decay"] == 0.01


def test_an_eps_of_adams_size_warns_once_and_in_the_line_that_gave_it() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            HVAdam([{"params": [parameter(2)]}, {"params": [parameter(3)], "eps": 0.1}], eps=1e-8)
    assert [(x.filename, x.category) for x in found] == [(__file__, UserWarning)]
    assert str(found[0].message).startswith("HVAdam: eps=0.1 ")
    with warnings.catch_warnings():  # the message's own advice
        warnings.filterwarnings("ignore", message="HVAdam: eps")
        HVAdam([parameter(2)], eps=1e-8)
    HVAdam([parameter(2)], eps=9e-9)
    HVAdam([parameter(2)], eps=1e-8, preconditioner="adam")  # where it is what it is in Adam


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


# Many groups


class Walked(defaultdict):
    """A state that gives out its elements one by one, each by a call that a profile counts."""

    def __iter__(self) -> Iterator[Any]:
        for key in super().__iter__():  # noqa: UP028
            yield key

    def values(self) -> Any:
        return (self[key] for key in super().__iter__())


class Searched(list):
    """A list of which every search is a call that a profile counts."""

    def __contains__(self, x: object) -> bool:
        return super().__contains__(x)


def calls(work: Callable[[], Any]) -> int:
    """Return how many functions are called by some work."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())


def calls_with(count: int, options: dict[str, Any]) -> dict[str, int]:
    """Return the calls of what an optimizer of so many groups does."""
    params = [parameter(2, dtype=torch.float32) for _ in range(count)]
    optimizer = HVAdam([{"params": [p]} for p in params], **options)
    optimizer.state = Walked(dict)
    for p in params:
        p.grad = torch.ones_like(p)
    found = {"first step": calls(optimizer.step), "second step": calls(optimizer.step)}
    state = optimizer.state_dict()
    for group in state["param_groups"]:
        group["params"] = Searched(group["params"])
    return {
        **found,
        "state_dict": calls(optimizer.state_dict),
        "load_state_dict": calls(lambda: optimizer.load_state_dict(state)),
        "diagnostics": calls(optimizer.diagnostics),
    }


@pytest.mark.parametrize(
    "options",
    [
        *({"scope": scope} for scope in SCOPES),
        {"kernel": "foreach", "max_grad_norm": 1.0},
        {"state_dtype": "int8"},
    ],
    ids=str,
)
def test_work_grows_with_the_number_of_groups_and_not_with_its_square(
    options: dict[str, Any],
) -> None:
    calls_with(2, options)  # what is found out once
    few, more, most = (calls_with(count, options) for count in (10, 20, 30))
    for name in few:
        bend = most[name] - 2 * more[name] + few[name]
        assert abs(bend) < 50, name  # a walk that begins anew for every group makes it 100
