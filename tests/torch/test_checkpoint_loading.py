"""What is loaded from a state dict, and the hooks around it."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
import torch
from made_parameters import (
    AVAILABLE,
    SCOPES,
    TENSORS,
    Build,
    Same,
    StateDict,
    Train,
    saved,
    trained,
    two_groups,
)
from torch import Tensor, nn

from hvadam import HVAdam

# What is loaded


def test_hyperparameters_are_loaded_but_the_kernel(
    build: Build, train: Train, assert_same: Same
) -> None:
    options: dict[str, Any] = {
        "lr": 0.02,
        "betas": (0.8, 0.99),
        "eps": 1e-10,
        "gamma": 1.0,
        "weight_decay": 0.3,
        "weight_decay_mode": "coupled",
        "hidden_scale": 0.5,
        "hidden_gain": "linear",
        "restart_threshold": 0.3,
        "preconditioner": "adam",
        "bounds": (-2.0, 3.0),
        "maximize": True,
    }
    state = saved(build, train, **options, kernel="loop")
    state["param_groups"][0]["kernel"] = "made for another machine"
    kept = copy.deepcopy(state)
    optimizer = HVAdam(two_groups(build()), kernel="foreach")
    defaults = copy.deepcopy(optimizer.defaults)
    with pytest.warns(UserWarning, match="the checkpoint changed options") as found:
        optimizer.load_state_dict(state)

    assert_same(state, kept)
    (message,) = [str(x.message) for x in found]
    assert all(f"{name} from " in message for name in options if name != "lr")
    assert "weight_decay from 0.0 to 0.3 in group 0;" in message
    assert "hidden_gain from 'exponential' to 'linear';" in message
    for group in optimizer.param_groups:
        assert group["kernel"] == "foreach"
        expected = {**options, "weight_decay": group["weight_decay"]}
        assert {name: group[name] for name in options} == expected
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.3, 0.1]
    assert {name: optimizer.defaults[name] for name in defaults} == defaults


def test_clipping_that_a_checkpoint_turns_off_is_named(build: Build, train: Train) -> None:
    state = saved(build, train, lr=0.01)
    optimizer = HVAdam(two_groups(build()), max_grad_norm=1.0, rounding_seed=3)
    with pytest.warns(UserWarning, match="max_grad_norm") as found:
        optimizer.load_state_dict(state)
    assert [(str(x.message), x.filename) for x in found] == [
        (
            "HVAdam: the checkpoint changed options that this optimizer was built with: "
            "max_grad_norm from 1.0 to None; rounding_seed from 3 to 0. To keep your own, set them "
            "in optimizer.param_groups after loading.",
            __file__,
        )
    ]
    assert optimizer.param_groups[0]["max_grad_norm"] is None  # as with any torch optimizer


def test_what_schedules_and_hooks_change_is_not_worth_a_warning(build: Build, train: Train) -> None:
    model = build()
    optimizer = HVAdam(two_groups(model))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=20)
    for step in range(5):
        train(model, optimizer, [step])
        schedule.step()
    state = copy.deepcopy(optimizer.state_dict())
    assert state["param_groups"][0]["betas"][0] != 0.9
    HVAdam(two_groups(build()), lr=0.5).load_state_dict(state)

    other = HVAdam(two_groups(build()), max_grad_norm=1.0)

    def keep_clipping(given: torch.optim.Optimizer) -> None:
        for group in given.param_groups:
            group["max_grad_norm"] = 1.0

    other.register_load_state_dict_post_hook(keep_clipping)
    other.load_state_dict(state)
    with pytest.warns(UserWarning, match=r"betas from \(0\.9, 0\.9\) to \(0\.\d+, 0\.999\)\."):
        HVAdam(two_groups(build()), betas=(0.9, 0.9)).load_state_dict(state)


def test_a_group_added_after_loading_has_the_constructor_defaults(
    build: Build, train: Train
) -> None:
    optimizer = HVAdam(two_groups(build()), lr=0.5)
    optimizer.load_state_dict(saved(build, train, lr=0.01))
    extra = nn.Parameter(torch.ones(2))
    optimizer.add_param_group({"params": extra})
    assert [group["lr"] for group in optimizer.param_groups] == [0.01, 0.01, 0.5]
    assert optimizer.param_groups[2]["scalars"][0].item() == 5.0
    extra.grad = torch.ones(2)
    optimizer.step()
    assert [group["scalars"][0].item() for group in optimizer.param_groups] == [6.0] * 3


@pytest.mark.parametrize("tensor_lr", [False, True], ids=["float", "tensor"])
def test_a_loaded_tensor_lr_is_a_copy(tensor_lr: bool, build: Build, train: Train) -> None:
    lr = torch.tensor(0.25) if tensor_lr else 0.25
    state = saved(build, train, lr=lr)
    optimizer = HVAdam(two_groups(build()))
    optimizer.load_state_dict(state)
    loaded = optimizer.param_groups[0]["lr"]
    assert type(loaded) is type(lr)
    assert loaded == 0.25
    if isinstance(loaded, Tensor):
        loaded.fill_(0.5)
        assert state["param_groups"][0]["lr"] == 0.25


def with_late_step(state: StateDict, step: str, pending: tuple[float, float] | None) -> StateDict:
    """Return a state dict as it was when the hidden step was an option."""
    state = copy.deepcopy(state)
    for group in state["param_groups"]:
        group["hidden_step"] = step
    for own in state["state"].values():
        if pending is not None:
            own["pending"] = torch.tensor(pending, dtype=torch.float64)
    return state


@pytest.mark.parametrize(("step", "pending"), [("exact", None), ("late", (0.0, 0.0))])
def test_a_state_from_when_the_hidden_step_was_an_option(
    step: str, pending: Any, build: Build, train: Train, assert_same: Same
) -> None:
    """It loads without a word where nothing is pending, and training goes on."""
    model, optimizer = trained(build, train)
    other = copy.deepcopy(model)
    resumed = HVAdam(two_groups(other))
    resumed.load_state_dict(with_late_step(optimizer.state_dict(), step, pending))
    assert_same(resumed.state_dict(), optimizer.state_dict())
    train(model, optimizer, range(5, 8))
    train(other, resumed, range(5, 8))
    assert_same(other.state_dict(), model.state_dict())


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(("made_with", "loaded_with"), list(itertools.permutations(AVAILABLE, 2)))
def test_kernels_read_each_others_state(
    made_with: Any, loaded_with: Any, scope: Any, build: Build, train: Train
) -> None:
    model = build(torch.float64)
    optimizer = HVAdam(two_groups(model), kernel=made_with, scope=scope)
    train(model, optimizer, range(5))
    other = copy.deepcopy(model)
    resumed = HVAdam(two_groups(other), kernel=loaded_with, scope=scope)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    train(model, optimizer, range(5, 8))
    train(other, resumed, range(5, 8))
    torch.testing.assert_close(other.state_dict(), model.state_dict(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_state_keeps_its_bits_beside_half_parameters(
    dtype: torch.dtype, scope: Any, build: Build, train: Train, assert_same: Same
) -> None:
    """Torch alone would cast state to the parameter's dtype: no float32 m, no float64 scalars."""
    model = build(dtype)
    optimizer = HVAdam(two_groups(model), scope=scope)
    train(model, optimizer, range(5))
    state = copy.deepcopy(optimizer.state_dict())
    resumed = HVAdam(two_groups(build(dtype)), scope=scope)
    resumed.load_state_dict(copy.deepcopy(state))
    assert_same(resumed.state_dict(), state)
    for values in resumed.state.values():
        assert {values[name].dtype for name in (*TENSORS, "step")} == {torch.float32}
        if scope == "tensor":
            assert values["scalars"].dtype == torch.float64
    if scope != "tensor":
        assert {group["scalars"].dtype for group in resumed.param_groups} == {torch.float64}


@pytest.mark.parametrize(
    ("made_with", "loaded_with", "kept"),
    [
        (torch.float32, torch.bfloat16, torch.float32),
        (torch.bfloat16, torch.float32, torch.float32),
        (torch.float32, torch.float64, torch.float64),
        (torch.float64, torch.float32, torch.float32),
    ],
)
def test_state_of_another_dtype_becomes_what_this_one_would_keep(
    made_with: torch.dtype, loaded_with: torch.dtype, kept: torch.dtype, build: Build, train: Train
) -> None:
    model = build(made_with)
    optimizer = HVAdam(two_groups(model), scope="tensor")
    train(model, optimizer, range(3))
    other = build(loaded_with)
    resumed = HVAdam(two_groups(other), scope="tensor")
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        for name in TENSORS:
            assert resumed.state[q][name].dtype == kept
            assert torch.equal(resumed.state[q][name], optimizer.state[p][name].to(kept))
        assert torch.equal(resumed.state[q]["scalars"], optimizer.state[p]["scalars"])
    train(other, resumed, range(3, 5))


@pytest.mark.parametrize("scope", SCOPES)
def test_diagnostics_of_a_loaded_optimizer(scope: Any, build: Build, train: Train) -> None:
    model = build()
    optimizer = HVAdam(model.named_parameters(), scope=scope)
    train(model, optimizer, range(5))
    other = build()
    resumed = HVAdam(other.named_parameters(), scope=scope, lr=0.5)
    train(other, resumed, range(2))  # what it remembers of its own last step is void
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    optimizer.zero_grad()  # what the gradients of the step tell, a checkpoint does not know
    assert resumed.diagnostics() == optimizer.diagnostics()


# Hooks


def test_a_state_dict_hook_before_and_after(build: Build, train: Train) -> None:
    _, optimizer = trained(build, train)
    seen: list[str] = []
    optimizer.register_state_dict_pre_hook(lambda given: seen.append("pre"))

    def post(given: torch.optim.Optimizer, state: StateDict) -> StateDict:
        assert given is optimizer
        assert state["state"][0]["exp_avg"] is next(iter(optimizer.state.values()))["exp_avg"]
        seen.append("post")
        return {**state, "note": "mine"}

    optimizer.register_state_dict_post_hook(post)
    assert optimizer.state_dict()["note"] == "mine"
    assert seen == ["pre", "post"]


def test_a_load_pre_hook_may_replace_the_dict(
    build: Build, train: Train, assert_same: Same
) -> None:
    """It runs before the checks, so that it can mend what they would refuse."""
    state = saved(build, train, scope="group", lr=0.01)
    broken = copy.deepcopy(state)
    for group in broken["param_groups"]:
        group["eps"] = -1.0
        del group["scalars"]
    optimizer = HVAdam(two_groups(build()), scope="group")

    def mend(given: torch.optim.Optimizer, incoming: StateDict) -> StateDict:
        assert given is optimizer
        assert incoming["param_groups"][0]["eps"] == -1.0
        return copy.deepcopy(state)

    handle = optimizer.register_load_state_dict_pre_hook(mend)
    optimizer.load_state_dict(broken)
    assert_same(optimizer.state_dict(), state)
    handle.remove()
    with pytest.raises(ValueError, match="eps must be"):
        optimizer.load_state_dict(broken)
    assert_same(optimizer.state_dict(), state)


def test_a_load_pre_hook_may_break_the_dict(build: Build, train: Train, assert_same: Same) -> None:
    """What a hook returns is checked like any other."""
    _, optimizer = trained(build, train)
    before = copy.deepcopy(optimizer.state_dict())

    def spoil(given: torch.optim.Optimizer, incoming: StateDict) -> StateDict:
        return {**incoming, "param_groups": [{**g, "lr": -1.0} for g in incoming["param_groups"]]}

    optimizer.register_load_state_dict_pre_hook(spoil)
    with pytest.raises(ValueError, match="lr must be"):
        optimizer.load_state_dict(saved(build, train))
    assert_same(optimizer.state_dict(), before)


@pytest.mark.parametrize("prepend", [False, True])
@pytest.mark.parametrize("scope", SCOPES)
def test_a_load_post_hook_sees_the_state_as_it_stays(
    scope: Any, prepend: bool, build: Build, train: Train, assert_same: Same
) -> None:
    model = build(torch.bfloat16)
    optimizer = HVAdam(two_groups(model), scope=scope)
    train(model, optimizer, range(3))
    state = copy.deepcopy(optimizer.state_dict())
    resumed = HVAdam(two_groups(build(torch.bfloat16)), scope=scope)
    seen: list[StateDict] = []
    resumed.register_load_state_dict_post_hook(
        lambda given: seen.append(copy.deepcopy(given.state_dict())), prepend=prepend
    )
    resumed.load_state_dict(copy.deepcopy(state))
    resumed.load_state_dict(copy.deepcopy(state))
    assert_same(seen, [state, state])


def test_loading_leaves_no_hooks_behind(build: Build, train: Train) -> None:
    optimizer = HVAdam(two_groups(build()))
    state = saved(build, train)
    optimizer.load_state_dict(state)
    state["param_groups"][0]["lr"] = -1.0
    with pytest.raises(ValueError, match="lr must be"):
        optimizer.load_state_dict(state)
    assert not optimizer._optimizer_load_state_dict_pre_hooks
    assert not optimizer._optimizer_load_state_dict_post_hooks
