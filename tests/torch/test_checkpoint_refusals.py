"""State dicts that do not fit: refused whole, with nothing changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from made_parameters import TENSORS, Build, Same, StateDict, Train, saved, trained, two_groups

from hvadam import HVAdam


def of_adam(build: Build, train: Train) -> StateDict:
    model = build()
    adam = torch.optim.Adam(two_groups(model))
    train(model, adam, range(2))
    return adam.state_dict()


def of_one_group(build: Build, train: Train) -> StateDict:
    model = build()
    optimizer = HVAdam(model.parameters())
    train(model, optimizer, range(2))
    return optimizer.state_dict()


def edited(edit: Callable[[StateDict], None], **options: Any) -> Callable[..., StateDict]:
    """A good state dict, changed."""

    def make(build: Build, train: Train) -> StateDict:
        state = saved(build, train, **options)
        edit(state)
        return state

    return make


def adams_second_moment(state: StateDict) -> None:
    for values in state["state"].values():
        values["exp_avg_sq"] = values.pop("exp_avg_var")


def drop_hidden(state: StateDict) -> None:
    del state["state"][1]["hidden"]


def move_parameter(state: StateDict) -> None:
    first, second = state["param_groups"]
    first["params"].append(second["params"].pop(0))


def other_shape(state: StateDict) -> None:
    state["state"][3]["hidden"] = torch.zeros(7)


def broadcastable_shape(state: StateDict) -> None:
    state["state"][1]["exp_avg"] = torch.zeros(())


def transposed(state: StateDict) -> None:
    for name in TENSORS:
        state["state"][1][name] = state["state"][1][name].T


def complex_values(state: StateDict) -> None:
    state["state"][1]["hidden"] = state["state"][1]["hidden"] * 1j


def unequal_scalars(state: StateDict) -> None:
    state["param_groups"][1]["scalars"][2] += 1e-9


def no_scalars(state: StateDict) -> None:
    del state["param_groups"][0]["scalars"]


def short_scalars(state: StateDict) -> None:
    state["param_groups"][0]["scalars"] = state["param_groups"][0]["scalars"][:3]


def disagreeing_decay(state: StateDict) -> None:
    state["param_groups"][1]["betas"] = (0.9, 0.9)


def with_option(name: str, value: Any, group: int = 1) -> Callable[[StateDict], None]:
    def edit(state: StateDict) -> None:
        state["param_groups"][group][name] = value

    return edit


def tensors_scalars(edit: Callable[[dict[str, Any]], None]) -> Callable[[StateDict], None]:
    return lambda state: edit(state["state"][2])


def instead(value: Any) -> Callable[..., Any]:
    """Something else, where a state dict belongs."""
    return lambda build, train: value


def with_state(value: Any, name: str | None = None) -> Callable[[StateDict], None]:
    def edit(state: StateDict) -> None:
        if name is None:
            state["state"][1] = value
        else:
            state["state"][1][name] = value

    return edit


def late(state: StateDict) -> None:
    """Make it the state of the late step, which was an option, with a step still to be taken."""
    for group in state["param_groups"]:
        group["hidden_step"] = "late"
    for own in state["state"].values():
        own["pending"] = torch.tensor([0.5, 1e-3], dtype=torch.float64)


def wrapped(build: Build, train: Train) -> StateDict:
    return {"model": {}, "optimizer": saved(build, train)}


REFUSED: dict[str, tuple[Callable[..., StateDict], str, dict[str, Any]]] = {
    "a list": (instead([1]), "HVAdam: a state dict must be a dict, got list", {}),
    "a tensor": (instead(torch.ones(2)), "a state dict must be a dict, got Tensor", {}),
    "a whole checkpoint": (
        wrapped,
        r"must hold 'state' and .*, got .*; load its 'optimizer'\.",
        {},
    ),
    "a model's state": (instead({"weight": 1}), r"got one with \['weight'\]\.", {}),
    "a list of states": (edited(lambda s: s.update(state=[])), "'state' of .* dict, got list", {}),
    "a tensor of groups": (
        edited(lambda s: s.update(param_groups=torch.ones(2))),
        "'param_groups' of a state dict must be a list, got Tensor",
        {},
    ),
    "a number as group": (
        edited(lambda s: s.update(param_groups=[1, 2])),
        "a param group of a state dict must be a dict, got int",
        {},
    ),
    "a group's parameters": (edited(with_option("params", 3)), "'params' of .* list, got int", {}),
    "a list as state": (edited(with_state([1])), "a parameter's state must be a dict, got", {}),
    "a list as tensor": (edited(with_state([1.0], "hidden")), "hidden of .* tensor, got list", {}),
    "a list as step": (edited(with_state([1.0], "step")), "step of .* tensor, got list", {}),
    "Adam": (of_adam, r"its groups lack 'gamma'; .* hvadam\.warm_start\(", {}),
    "Adam's tensors": (edited(adams_second_moment), "must hold .*'exp_avg_var'.*, got", {}),
    "a tensor missing": (edited(drop_hidden), "must hold .*'hidden'.*, got", {}),
    "group count": (of_one_group, "different number of parameter groups", {}),
    "group size": (edited(move_parameter), "doesn't match the size", {}),
    "shape": (edited(other_shape), r"hidden of shape \(7,\) does not fit", {}),
    "0-dim": (edited(broadcastable_shape), r"exp_avg of shape \(\) does not fit", {}),
    "transposed": (edited(transposed), r"of shape \(4, 6\) does not fit.*\(6, 4\)", {}),
    "complex": (edited(complex_values), "hidden", {}),
    "scope": (
        edited(lambda state: None, scope="group"),
        "made with scope='group', this optimizer has 'global'; build it with scope='group'",
        {},
    ),
    "scope the other way": (
        edited(lambda state: None),
        "made with scope='global', this optimizer has 'tensor'",
        {"scope": "tensor"},
    ),
    "restart rule": (
        edited(lambda state: None, restart_rule="authors"),
        "made with restart_rule='authors', this optimizer has 'paper'",
        {},
    ),
    "a late step": (
        edited(late),
        r"'late', which is gone, .*call optimizer\.flush\(\), and save",
        {},
    ),
    "unequal scalars": (edited(unequal_scalars), "all groups carry the same scalars", {}),
    "no scalars": (edited(no_scalars), "scalars must be a tensor of 10 numbers, got None", {}),
    "short scalars": (edited(short_scalars), "scalars must be a tensor of 10 numbers", {}),
    "no scalars of a tensor": (
        edited(tensors_scalars(lambda values: values.pop("scalars")), scope="tensor"),
        "must hold .*'scalars'.*, got",
        {"scope": "tensor"},
    ),
    "short scalars of a tensor": (
        edited(
            tensors_scalars(lambda values: values.update(scalars=torch.zeros(3))), scope="tensor"
        ),
        "scalars must be a tensor of 10 numbers",
        {"scope": "tensor"},
    ),
    "betas[1] of one group": (edited(disagreeing_decay), r"betas\[1\] must be equal", {}),
    "lr": (edited(with_option("lr", -1.0)), "lr must be >= 0", {}),
    "betas": (edited(with_option("betas", (0.9, 1.0))), r"betas\[1\] must be in", {}),
    "eps": (edited(with_option("eps", 0.0)), "eps must be", {}),
    "gamma": (edited(with_option("gamma", float("nan"))), "gamma must be", {}),
    "weight_decay": (edited(with_option("weight_decay", -1.0)), "weight_decay must be", {}),
    "mode": (edited(with_option("weight_decay_mode", "l2")), "weight_decay_mode must be", {}),
    "hidden_scale": (edited(with_option("hidden_scale", -1.0)), "hidden_scale must be", {}),
    "hidden_gain": (edited(with_option("hidden_gain", "cubic")), "hidden_gain must be", {}),
    "threshold": (edited(with_option("restart_threshold", 2)), "restart_threshold must be", {}),
    "preconditioner": (edited(with_option("preconditioner", "")), "preconditioner must be", {}),
    "bounds": (edited(with_option("bounds", (1.0, 0.0))), "bounds must be", {}),
}


@pytest.mark.parametrize(("make", "message", "options"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused_whole(
    make: Callable[..., StateDict],
    message: str,
    options: dict[str, Any],
    build: Build,
    train: Train,
    assert_same: Same,
) -> None:
    model, optimizer = trained(build, train, lr=0.01, **options)
    before = copy.deepcopy(optimizer.state_dict())
    diagnosed = optimizer.diagnostics()
    groups = optimizer.param_groups
    with pytest.raises((TypeError, ValueError), match=message):
        optimizer.load_state_dict(make(build, train))
    assert_same(optimizer.state_dict(), before)
    assert optimizer.param_groups is groups
    assert optimizer.diagnostics() == diagnosed

    # And it goes on as if nothing had been tried.
    twin, untouched = trained(build, train, lr=0.01, **options)
    train(model, optimizer, range(5, 8))
    train(twin, untouched, range(5, 8))
    assert_same(model.state_dict(), twin.state_dict())
