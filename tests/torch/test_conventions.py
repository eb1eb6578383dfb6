"""HVAdam behaves as torch's own optimizers do: what users and trainers count on without asking."""

from __future__ import annotations

import copy
import gc
import inspect
import re
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import lr_scheduler
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from hvadam import HVAdam
from hvadam.core.scalars import INITIAL
from hvadam.torch import kernels

if TYPE_CHECKING:
    from torch.testing._internal.common_optimizers import ErrorOptimizerInput

KERNELS = ["auto", *(name for name, k in kernels.KERNELS.items() if k.available() is None)]
SCOPES = ["global", "group", "tensor"]

Build = Callable[..., nn.Module]
Train = Callable[[nn.Module, torch.optim.Optimizer, Iterable[int]], list[float]]
Same = Callable[[Any, Any], None]


def parameter(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> nn.Parameter:
    generator = torch.Generator().manual_seed(seed)
    return nn.Parameter(torch.randn(shape, dtype=dtype, generator=generator))


def set_grads(params: Iterable[Tensor], step: int) -> None:
    """A gradient with a trend and some noise, the same for the same shapes and step."""
    generator = torch.Generator().manual_seed(1000 + step)
    for p in params:
        noise = torch.randn(p.shape, dtype=torch.complex128, generator=generator)
        p.grad = (
            (1.0 + 0.5j + noise).to(p.dtype) if p.is_complex() else (1.0 + noise.real).to(p.dtype)
        )


def feed(optimizer: torch.optim.Optimizer, steps: Iterable[int]) -> None:
    """Step with ``set_grads`` for every parameter of an optimizer."""
    for step in steps:
        set_grads([p for group in optimizer.param_groups for p in group["params"]], step)
        optimizer.step()


# Construction


def test_errors_are_raised_as_declared(error_input: ErrorOptimizerInput) -> None:
    given = error_input.optimizer_error_input
    params = [parameter(2)] if given.params is None else given.params
    error: Any = error_input.error_type
    expect = pytest.warns if issubclass(error, Warning) else pytest.raises
    with expect(error, match=error_input.error_regex):
        HVAdam(params, **given.kwargs)


def test_every_argument_has_an_error_declared(declared_errors: list[ErrorOptimizerInput]) -> None:
    declared = {name for x in declared_errors for name in x.optimizer_error_input.kwargs}
    assert declared == set(inspect.signature(HVAdam).parameters) - {"params"}


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


# Progress


def test_the_loss_goes_the_right_way(options: dict[str, Any], build: Build, train: Train) -> None:
    model = build()
    losses = train(model, HVAdam(model.parameters(), **options), range(60))
    start, end = sum(losses[:10]), sum(losses[-10:])
    assert end > start if options.get("maximize") else end < start


SCHEDULERS: dict[str, Callable[[torch.optim.Optimizer], Any]] = {
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 0.9**epoch),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, lambda epoch: 0.95),
    "StepLR": lambda o: lr_scheduler.StepLR(o, step_size=10, gamma=0.5),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, milestones=[5, 20]),
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o, factor=0.5, total_iters=5),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, start_factor=0.1, total_iters=10),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, gamma=0.95),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o,
        [
            lr_scheduler.LinearLR(o, start_factor=0.1, total_iters=5),
            lr_scheduler.CosineAnnealingLR(o, T_max=30),
        ],
        milestones=[5],
    ),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=30),
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(o, factor=0.5), lr_scheduler.ExponentialLR(o, gamma=0.95)]
    ),
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0, threshold=0.5),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.001, 0.01, step_size_up=5),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=7),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.02, total_steps=40),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, total_iters=40),
}


def run_scheduled(
    model: nn.Module, optimizer: torch.optim.Optimizer, scheduler: Any, train: Train
) -> tuple[list[tuple[float, float]], list[float]]:
    """The (lr, betas[0]) of each step, and the losses."""
    used: list[tuple[float, float]] = []
    losses: list[float] = []
    for step in range(20):
        group = optimizer.param_groups[0]
        used.append((float(group["lr"]), group["betas"][0]))
        losses += train(model, optimizer, [step])
        if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
            scheduler.step(losses[-1])
        else:
            scheduler.step()
    return used, losses


def test_every_scheduler_of_torch_is_tried() -> None:
    assert set(SCHEDULERS) == set(lr_scheduler.__all__) - {"LRScheduler"}


@pytest.mark.parametrize("tensor_lr", [False, True], ids=["float", "tensor"])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers_set_what_the_step_uses(
    name: str, tensor_lr: bool, build: Build, train: Train, assert_same: Same
) -> None:
    def lr() -> float | Tensor:
        return torch.tensor(0.01, dtype=torch.float64) if tensor_lr else 0.01

    model = build()
    optimizer = HVAdam(model.parameters(), lr=lr())
    used, losses = run_scheduled(model, optimizer, SCHEDULERS[name](optimizer), train)
    assert sum(losses[-5:]) < sum(losses[:5])
    assert len(set(used)) > 1
    assert isinstance(optimizer.param_groups[0]["lr"], Tensor) == tensor_lr

    # The same values written by hand take the same steps.
    twin = build()
    by_hand = HVAdam(twin.parameters(), lr=1.0)
    for step, (value, beta1) in enumerate(used):
        by_hand.param_groups[0].update(lr=value, betas=(beta1, 0.999))
        train(twin, by_hand, [step])
    assert_same(model.state_dict(), twin.state_dict())

    if name != "ReduceLROnPlateau":  # which reads the loss
        other = build()
        adam = torch.optim.Adam(other.parameters(), lr=lr())
        assert run_scheduled(other, adam, SCHEDULERS[name](adam), train)[0] == used


@pytest.mark.parametrize("name", ["CyclicLR", "OneCycleLR"])
def test_momentum_is_cycled_as_the_first_beta(name: str, build: Build, train: Train) -> None:
    model = build()
    optimizer = HVAdam(model.parameters())
    used, _ = run_scheduled(model, optimizer, SCHEDULERS[name](optimizer), train)
    assert len({beta1 for _, beta1 in used}) > 5
    assert optimizer.param_groups[0]["betas"][1] == 0.999


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lr", 0.02),
        ("lr", torch.tensor(0.02)),
        ("betas", (0.5, 0.999)),
        ("betas", (0.9, 0.5)),
        ("eps", 1e-3),
        ("gamma", 0.0),
        ("weight_decay", 0.5),
        ("weight_decay_mode", "coupled"),
        ("hidden_scale", 0.0),
        ("hidden_gain", "linear"),
        ("restart_threshold", 0.999),
        ("preconditioner", "adam"),
        ("bounds", (-0.1, 0.1)),
        ("maximize", True),
    ],
    ids=str,
)
def test_an_option_changed_between_steps_takes_effect(
    name: str, value: Any, kernel: str, build: Build, train: Train
) -> None:
    """Schedulers and users write to ``param_groups``; the next step reads it, not the defaults."""

    def run(change: dict[str, Any]) -> Tensor:
        model = build(torch.float64)
        optimizer = HVAdam(model.parameters(), lr=0.01, weight_decay=0.1, kernel=kernel)
        train(model, optimizer, range(3))
        optimizer.param_groups[0].update(change)
        train(model, optimizer, range(3, 6))
        return torch.cat([p.detach().reshape(-1) for p in model.parameters()])

    assert not torch.allclose(run({name: value}), run({}), rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (1,)], ids=["0-dim", "one-element"])
def test_a_tensor_lr_is_its_number(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    kernel: str,
    build: Build,
    train: Train,
    assert_same: Same,
) -> None:
    lr = torch.full(shape, 0.01, dtype=dtype)
    options: dict[str, Any] = {"weight_decay": 0.1, "bounds": (-0.5, 0.5), "kernel": kernel}
    model, twin = build(), build()
    optimizer = HVAdam(model.parameters(), lr=lr, **options)
    train(model, optimizer, range(5))
    train(twin, HVAdam(twin.parameters(), lr=lr.item(), **options), range(5))
    assert_same(model.state_dict(), twin.state_dict())
    assert optimizer.param_groups[0]["lr"] is lr
    assert torch.equal(lr, torch.full(shape, 0.01, dtype=dtype))


# Kinds of parameters


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_parameters_are_pairs_of_reals(
    dtype: torch.dtype, kernel: str, options: dict[str, Any], assert_same: Same
) -> None:
    options["kernel"] = kernel
    pairs = [
        parameter(3, 2, dtype=dtype),
        parameter(4, dtype=dtype, seed=1),
        parameter(dtype=dtype),
    ]
    reals = [nn.Parameter(torch.view_as_real(p.detach()).clone()) for p in pairs]
    optimizer = HVAdam(pairs, **options)
    twin = HVAdam(reals, **copy.deepcopy(options))
    for step in range(4):
        set_grads(pairs, step)
        for p, real in zip(pairs, reals, strict=True):
            assert p.grad is not None
            real.grad = torch.view_as_real(p.grad).clone()
        optimizer.step()
        twin.step()
    for p, real in zip(pairs, reals, strict=True):
        assert_same(torch.view_as_real(p.detach()), real.detach())
        for name in ("exp_avg", "hidden", "exp_avg_var"):
            state = optimizer.state[p][name]
            assert state.dtype == dtype
            assert_same(torch.view_as_real(state), twin.state[real][name])


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_dtypes_mix_in_one_group(kernel: str, scope: Any) -> None:
    """Each keeps its own dtype, and follows its float64 twin as far as that dtype goes."""
    dtypes = [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.complex64]
    params = [parameter(6, dtype=dtype, seed=i) for i, dtype in enumerate(dtypes)]
    twins = [
        nn.Parameter(p.detach().to(torch.complex128 if p.is_complex() else torch.float64))
        for p in params
    ]
    optimizer = HVAdam(params, lr=0.01, kernel=kernel, scope=scope)
    exact = HVAdam(twins, lr=0.01, kernel=kernel, scope=scope)
    for step in range(10):
        set_grads(params, step)
        for p, twin in zip(params, twins, strict=True):
            assert p.grad is not None
            twin.grad = p.grad.to(twin.dtype)
        optimizer.step()
        exact.step()
    for p, twin, dtype in zip(params, twins, dtypes, strict=True):
        assert p.dtype == dtype
        torch.testing.assert_close(
            p.to(twin.dtype), twin, rtol=20 * torch.finfo(dtype).eps, atol=2e-4
        )
        for name in ("exp_avg", "hidden", "exp_avg_var"):
            half = dtype in (torch.bfloat16, torch.float16)
            assert optimizer.state[p][name].dtype == (torch.float32 if half else dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_parameters_keep_float32_state(
    dtype: torch.dtype, options: dict[str, Any], build: Build, train: Train
) -> None:
    model = build(dtype)
    optimizer = HVAdam(model.parameters(), **options)
    train(model, optimizer, range(2))
    for p in model.parameters():
        assert p.dtype == dtype
        assert p.isfinite().all()
        state = optimizer.state[p]
        assert {x.dtype for key, x in state.items() if key not in ("scalars", "pending")} == {
            torch.float32
        }


def _strided(p: Tensor) -> dict[str, Tensor]:
    """One (4, 6, 2, 2) tensor in several layouts."""
    wide = torch.zeros(4, 6, 2, 4, dtype=p.dtype)
    return {
        "transposed": p.transpose(0, 1).contiguous().transpose(0, 1),
        "channels last": p.contiguous(memory_format=torch.channels_last),
        "every other": wide[..., ::2].copy_(p),
    }


@pytest.mark.parametrize("scope", ["global", "tensor"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("grad_layout", ["contiguous", "as parameter"])
@pytest.mark.parametrize("layout", ["transposed", "channels last", "every other"])
def test_memory_layout_changes_nothing_but_rounding(
    layout: str, grad_layout: str, kernel: str, scope: Any
) -> None:
    value = parameter(4, 6, 2, 2).detach()
    p, twin = nn.Parameter(_strided(value)[layout]), nn.Parameter(value.clone())
    assert not p.is_contiguous()
    stride = p.stride()
    optimizer = HVAdam([p], lr=0.01, weight_decay=0.1, kernel=kernel, scope=scope)
    contiguous = HVAdam([twin], lr=0.01, weight_decay=0.1, kernel=kernel, scope=scope)
    for step in range(10):
        set_grads([twin], step)
        assert twin.grad is not None
        p.grad = _strided(twin.grad)[layout] if grad_layout == "as parameter" else twin.grad.clone()
        optimizer.step()
        contiguous.step()
    torch.testing.assert_close(p, twin, rtol=1e-12, atol=1e-12)
    assert p.stride() == stride
    if layout != "every other":
        assert optimizer.state[p]["hidden"].stride() == stride


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_expanded_gradient_is_read_like_any_other(kernel: str, assert_same: Same) -> None:
    p, twin = parameter(3, 4), parameter(3, 4)
    optimizer, plain = HVAdam([p], kernel=kernel), HVAdam([twin], kernel=kernel)
    for _ in range(3):
        p.grad = torch.tensor(0.5, dtype=p.dtype).expand(3, 4)
        twin.grad = torch.full((3, 4), 0.5, dtype=p.dtype)
        optimizer.step()
        plain.step()
    assert_same(p.detach(), twin.detach())


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_empty_and_0_dim_parameters(kernel: str, scope: Any, assert_same: Same) -> None:
    """An empty tensor takes part without a trace, a 0-dim one moves as a one-element one."""
    params = [parameter(0), parameter(), parameter(2, 0, 3), parameter(4, seed=1)]
    twins = [parameter(1), parameter(4, seed=1)]
    optimizer = HVAdam(params, lr=0.01, kernel=kernel, scope=scope)
    plain = HVAdam(twins, lr=0.01, kernel=kernel, scope=scope)
    for step in range(5):
        set_grads(params, step)
        for p, twin in ((params[1], twins[0]), (params[3], twins[1])):
            assert p.grad is not None
            twin.grad = p.grad.reshape(twin.shape)
        optimizer.step()
        plain.step()
    assert_same(params[1].detach().reshape(1), twins[0].detach())
    assert_same(params[3].detach(), twins[1].detach())
    assert [p.shape for p in params] == [(0,), (), (2, 0, 3), (4,)]


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_nothing_but_empty_parameters(kernel: str, scope: Any) -> None:
    params = [parameter(0), parameter(3, 0)]
    optimizer = HVAdam(params, kernel=kernel, scope=scope)
    feed(optimizer, range(3))
    assert all(values["holds"] == 3.0 for values in optimizer.diagnostics().values())


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("first", ["cpu", "meta"])
@pytest.mark.parametrize("separate", [False, True], ids=["one group", "two groups"])
def test_a_meta_parameter_beside_a_real_one_is_an_error(
    separate: bool, first: str, kernel: str, scope: Any, assert_same: Same
) -> None:
    """Torch's Adam steps over it in silence; a hidden vector cannot span data that is not there."""
    real = parameter(3)
    before = real.detach().clone()
    meta = nn.Parameter(torch.empty(3, device="meta"))
    params = [real, meta] if first == "cpu" else [meta, real]
    optimizer = HVAdam(
        [{"params": p} for p in params] if separate else params, kernel=kernel, scope=scope
    )
    real.grad, meta.grad = torch.ones_like(real), torch.ones_like(meta)
    with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
        optimizer.step()
    assert_same(real.detach(), before)


# The step


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gradient_is_never_written(kernel: str, options: dict[str, Any]) -> None:
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
def test_no_gradient_is_kept_alive(kernel: str) -> None:
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
def test_no_rate_no_move(kernel: str, options: dict[str, Any]) -> None:
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
    layout: str, kernel: str, scope: Any, assert_same: Same
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
    kernel: str, options: dict[str, Any], assert_same: Same
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
def test_freezing_and_joining_late(kernel: str, scope: Any, assert_same: Same) -> None:
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


# Mixed precision


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


# torch.compile

compiling = pytest.mark.filterwarnings(
    "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning"  # torch's own use of it
)


def compiled_pair(
    params: list[nn.Parameter], backend: str = "eager", **options: Any
) -> tuple[HVAdam, HVAdam, Callable[[], Any]]:
    """An optimizer, its twin on copies of the parameters, and the twin's compiled step."""
    plain = HVAdam(groups_of(params), **copy.deepcopy(options))
    twin = HVAdam(groups_of(copy.deepcopy(params)), **copy.deepcopy(options))
    return plain, twin, torch.compile(twin.step, fullgraph=True, backend=backend)


def groups_of(params: list[nn.Parameter]) -> list[dict[str, Any]]:
    return [{"params": params[:1]}, {"params": params[1:], "weight_decay": 0.1}]


@contextmanager
def no_recompilation() -> Iterator[None]:
    with torch._dynamo.config.patch(error_on_recompile=True):
        yield


@pytest.fixture
def dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def agree(plain: HVAdam, twin: HVAdam, **tolerance: Any) -> None:
    torch.testing.assert_close(
        [p.detach() for group in twin.param_groups for p in group["params"]],
        [p.detach() for group in plain.param_groups for p in group["params"]],
        **tolerance,
    )
    ours, theirs = twin.state_dict(), plain.state_dict()
    torch.testing.assert_close(ours["state"], theirs["state"], **tolerance)
    for mine, other in zip(ours["param_groups"], theirs["param_groups"], strict=True):
        if "scalars" in other:
            torch.testing.assert_close(mine["scalars"], other["scalars"], **tolerance)


def run_compiled(
    plain: HVAdam, twin: HVAdam, step: Callable[[], Any], rates: list[float], **tolerance: Any
) -> None:
    """Step both alike, the first step being the compiled one's own start; compare each time."""
    for i, rate in enumerate(rates):
        for optimizer in (plain, twin):
            for group in optimizer.param_groups:
                group["lr"].fill_(rate)
            set_grads([p for group in optimizer.param_groups for p in group["params"]], i)
        plain.step()
        if i == 0:
            step()
        else:
            with no_recompilation():
                step()
        agree(plain, twin, **tolerance)


@compiling
@pytest.mark.usefixtures("dynamo")
@pytest.mark.parametrize(
    ("kernel", "betas"), [("foreach", (0.9, 0.999)), ("auto", (0.4, 0.9))], ids=["foreach", "auto"]
)
def test_a_compiled_step_is_the_step(kernel: str, betas: tuple[float, float]) -> None:
    """In one graph, from the first step on, and a new lr needs no new one."""
    params = [parameter(3, 4), parameter(5, seed=1), parameter(seed=2)]
    lr = torch.tensor(0.01, dtype=torch.float64)
    plain, twin, step = compiled_pair(params, "aot_eager", lr=lr, kernel=kernel, betas=betas)
    rates = [0.01, 0.01, 0.02, 0.03, 0.0, 0.01, 0.005, 0.005, 0.001, 0.1]
    run_compiled(plain, twin, step, rates, rtol=1e-11, atol=1e-13)
    assert torch._dynamo.utils.counters["graph_break"] == {}


@compiling
@pytest.mark.usefixtures("dynamo")
@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        pytest.param(torch.float32, {}, id="float32"),
        pytest.param(torch.bfloat16, {}, id="bfloat16"),
        pytest.param(torch.complex64, {}, id="complex64", marks=pytest.mark.slow),
        pytest.param(torch.float64, {"bounds": (-0.5, 0.5), "maximize": True}, id="bounds"),
    ],
)
def test_compiled_variants(dtype: torch.dtype, options: dict[str, Any]) -> None:
    """With a 0-dim parameter, and a step at lr=0 that must not project onto the box."""
    params = [
        parameter(3, 4, dtype=dtype),
        parameter(5, dtype=dtype, seed=1),
        parameter(dtype=dtype),
    ]
    lr = torch.tensor(0.01, dtype=torch.float64)
    plain, twin, step = compiled_pair(params, lr=lr, **options)
    eps = max(torch.finfo(dtype).eps, torch.finfo(torch.float64).eps)
    run_compiled(plain, twin, step, [0.0, 0.01, 0.02, 0.02], rtol=1e3 * eps, atol=1e3 * eps)


@compiling
@pytest.mark.usefixtures("dynamo")
def test_diagnostics_after_a_compiled_step_are_those_of_that_step() -> None:
    plain, twin, step = compiled_pair([parameter(3), parameter(2)], lr=torch.tensor(0.1))
    for optimizer in (plain, twin):
        feed(optimizer, [0])
        for group in optimizer.param_groups:
            group["lr"].fill_(0.001)
        set_grads([p for group in optimizer.param_groups for p in group["params"]], 1)
    plain.step()
    step()
    expected = plain.diagnostics()["global"]
    assert twin.diagnostics()["global"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@compiling
@pytest.mark.usefixtures("dynamo")
def test_every_input_compiles(options: dict[str, Any]) -> None:
    if options.get("hidden_step") == "late":
        params = [parameter(3)]
        params[0].grad = torch.ones_like(params[0])
        step = torch.compile(HVAdam(params, **options).step, fullgraph=True, backend="eager")
        with pytest.raises(Exception, match=r'torch\.compile is for hidden_step="exact"'):
            step()
        return
    options["lr"] = torch.tensor(0.01, dtype=torch.float64)
    params = [parameter(3, 4), parameter(5, seed=1), parameter(seed=2)]
    plain, twin, step = compiled_pair(params, "aot_eager", **options)
    run_compiled(plain, twin, step, [0.01, 0.02, 0.03, 0.01, 0.01], rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@compiling
@pytest.mark.usefixtures("dynamo")
@pytest.mark.skipif(" " in torch.__file__, reason="inductor cannot link torch in such a path")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernel", ["foreach", "auto"])
def test_inductor(kernel: str, dtype: torch.dtype) -> None:
    params = [parameter(30, 40, dtype=dtype), parameter(5, dtype=dtype), parameter(dtype=dtype)]
    lr = torch.tensor(0.01, dtype=torch.float64)
    plain, twin, step = compiled_pair(params, "inductor", lr=lr, kernel=kernel)
    eps = torch.finfo(dtype).eps
    run_compiled(plain, twin, step, [0.01] * 5 + [0.02] * 5, rtol=1e4 * eps, atol=1e3 * eps)
