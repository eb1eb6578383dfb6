"""State dicts and copies: training goes on from them bit for bit, or they are refused whole."""

from __future__ import annotations

import copy
import io
import itertools
import pickle
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from hvadam import HVAdam
from hvadam.torch import kernels

KERNELS = [name for name, kernel in kernels.KERNELS.items() if kernel.available() is None]
SCOPES = ["global", "group", "tensor"]
TENSORS = ("exp_avg", "hidden", "exp_avg_var")

Build = Callable[..., nn.Module]
Train = Callable[[nn.Module, torch.optim.Optimizer, Iterable[int]], list[float]]
Same = Callable[[Any, Any], None]
StateDict = dict[str, Any]


def own_gain(delta: Tensor) -> Tensor:
    """At module level, where pickle finds it."""
    return 3.0 * delta


def two_groups(model: nn.Module) -> list[dict[str, Any]]:
    first, *others = model.parameters()
    return [{"params": [first]}, {"params": others, "weight_decay": 0.1}]


def trained(build: Build, train: Train, **options: Any) -> tuple[nn.Module, HVAdam]:
    model = build()
    optimizer = HVAdam(two_groups(model), **options)
    train(model, optimizer, range(5))
    return model, optimizer


def saved(build: Build, train: Train, **options: Any) -> StateDict:
    return copy.deepcopy(trained(build, train, **options)[1].state_dict())


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
    optimizer.load_state_dict(state)

    assert_same(state, kept)
    for group in optimizer.param_groups:
        assert group["kernel"] == "foreach"
        expected = {**options, "weight_decay": group["weight_decay"]}
        assert {name: group[name] for name in options} == expected
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.3, 0.1]
    assert {name: optimizer.defaults[name] for name in defaults} == defaults


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


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(("made_with", "loaded_with"), list(itertools.permutations(KERNELS, 2)))
def test_kernels_read_each_others_state(
    made_with: str, loaded_with: str, scope: Any, build: Build, train: Train
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


# Gains


def test_a_state_made_with_an_own_gain_loads_beside_it(
    build: Build, train: Train, assert_same: Same
) -> None:
    model, optimizer = trained(build, train, hidden_gain=own_gain)
    state = optimizer.state_dict()
    assert (
        state["param_groups"][0]["hidden_gain"] == "custom"
    )  # a name, so weights_only can read it
    other = copy.deepcopy(model)
    resumed = HVAdam(two_groups(other), hidden_gain=own_gain)
    resumed.load_state_dict(copy.deepcopy(state))
    train(model, optimizer, range(5, 10))
    train(other, resumed, range(5, 10))
    assert_same(other.state_dict(), model.state_dict())
    assert pickle.loads(pickle.dumps(optimizer)).defaults["hidden_gain"] is own_gain


def test_a_named_gain_is_loaded_over_an_own_one(
    build: Build, train: Train, assert_same: Same
) -> None:
    model, optimizer = trained(build, train, hidden_gain="linear")
    other = copy.deepcopy(model)
    resumed = HVAdam(two_groups(other), hidden_gain=own_gain)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    train(model, optimizer, range(5, 10))
    train(other, resumed, range(5, 10))
    assert_same(other.state_dict(), model.state_dict())


# Refusals


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


REFUSED: dict[str, tuple[Callable[..., StateDict], str, dict[str, Any]]] = {
    "Adam": (of_adam, "not the state of an HVAdam, its groups lack 'gamma'", {}),
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
    "own gain": (
        edited(lambda state: None, hidden_gain=own_gain),
        "made with a callable hidden_gain",
        {},
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
    with pytest.raises(ValueError, match=message):
        optimizer.load_state_dict(make(build, train))
    assert_same(optimizer.state_dict(), before)
    assert optimizer.param_groups is groups
    assert optimizer.diagnostics() == diagnosed

    # And it goes on as if nothing had been tried.
    twin, untouched = trained(build, train, lr=0.01, **options)
    train(model, optimizer, range(5, 8))
    train(twin, untouched, range(5, 8))
    assert_same(model.state_dict(), twin.state_dict())
