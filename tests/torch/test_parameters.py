"""Kinds of parameters: dtypes, memory layouts, and tensors with no element."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from judge import judged_step
from made_parameters import KERNELS, SCOPES, Build, Same, Train, feed, parameter, set_grads
from torch import Tensor, nn

from hvadam import HVAdam


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_parameters_are_pairs_of_reals(
    dtype: torch.dtype, kernel: Any, options: dict[str, Any], assert_same: Same
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
def test_dtypes_mix_in_one_group(kernel: Any, scope: Any) -> None:
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
        assert {x.dtype for key, x in state.items() if key != "scalars"} == {torch.float32}


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
    layout: str, grad_layout: str, kernel: Any, scope: Any
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
def test_an_expanded_gradient_is_read_like_any_other(kernel: Any, assert_same: Same) -> None:
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
def test_empty_and_0_dim_parameters(kernel: Any, scope: Any, assert_same: Same) -> None:
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
def test_nothing_but_empty_parameters(kernel: Any, scope: Any) -> None:
    params = [parameter(0), parameter(3, 0)]
    optimizer = HVAdam(params, kernel=kernel, scope=scope)
    feed(optimizer, range(3))
    assert all(values["holds"] == 3.0 for values in optimizer.diagnostics().values())


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("first", ["cpu", "meta"])
@pytest.mark.parametrize("separate", [False, True], ids=["one group", "two groups"])
def test_a_meta_parameter_beside_a_real_one_is_an_error(
    separate: bool, first: str, kernel: Any, scope: Any, assert_same: Same
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


def lazily_conjugated(p: Tensor) -> Tensor:
    return p.data.conj()


def lazily_negated(p: Tensor) -> Tensor:
    return torch._neg_view(p.data)


def lazily_negated_with_gaps(p: Tensor) -> Tensor:
    return torch.complex(p.data, -p.data).conj().imag


LAZY = [
    (torch.complex64, lazily_conjugated),
    (torch.complex64, lazily_negated),
    (torch.float32, lazily_negated),
    (torch.float32, lazily_negated_with_gaps),
    (torch.float16, lazily_negated),
]


@pytest.mark.parametrize(("dtype", "lazy"), LAZY)
@pytest.mark.parametrize("shape", [(), (4,)], ids=str)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_parameter_that_becomes_a_lazy_view_is_refused_before_anything_moves(
    kernel: Any,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    lazy: Callable[[Tensor], Tensor],
    assert_same: Same,
) -> None:
    other, p = parameter(3), nn.Parameter(parameter(*shape).detach().to(dtype))
    optimizer = HVAdam([{"params": [other]}, {"params": [p]}], kernel=kernel)
    feed(optimizer, range(2))
    p.data = lazy(p)
    set_grads([other, p], 2)

    def everything() -> Any:
        return copy.deepcopy((other, p.detach() + 0, optimizer.state_dict()))

    before = everything()
    with pytest.raises(ValueError, match=r"^HVAdam: .* lazily; give it p\.resolve_conj\(\)"):
        optimizer.step()
    p.grad = None
    assert_same(everything(), before)
    set_grads([p], 2)
    p.data = p.data.resolve_conj().resolve_neg()
    optimizer.step()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.complex64])
def test_lazily_negated_gradients_have_their_sign(kernel: Any, dtype: torch.dtype) -> None:
    finals: list[Tensor] = []
    for lazy in (False, True):
        p = nn.Parameter(torch.ones(5, dtype=dtype))
        optimizer = HVAdam([p], lr=0.1, kernel=kernel)
        for step in range(3):
            set_grads([p], step)
            assert p.grad is not None
            p.grad = torch._neg_view(p.grad) if lazy else -p.grad
            optimizer.step()
        finals.append(p.detach())
    torch.testing.assert_close(*finals)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (torch.float32, torch.float64),
        (torch.float64, torch.float32),
        (torch.float64, torch.bfloat16),
        (torch.complex64, torch.complex128),
    ],
)
def test_another_dtype_is_refused_until_the_state_is_converted(
    kernel: Any, before: torch.dtype, after: torch.dtype, assert_same: Same
) -> None:
    """Change the dtype of parameters in mid-training, as ``model.double()`` does."""
    other, p = parameter(3), parameter(4, dtype=before)
    optimizer = HVAdam([{"params": [other]}, {"params": [p]}], kernel=kernel)
    feed(optimizer, range(2))
    p.grad, p.data = None, p.data.to(after)
    set_grads([other, p], 2)
    kept = copy.deepcopy((other, p, optimizer.state_dict()))
    match = rf"^HVAdam: a parameter is now {after} .* {before} .*load_state_dict\(optimizer\.state_"
    with pytest.raises(RuntimeError, match=match):
        optimizer.step()
    assert_same((other, p, optimizer.state_dict()), kept)
    optimizer.load_state_dict(optimizer.state_dict())
    judged_step(optimizer)


@pytest.mark.parametrize("state_dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_low_bit_state_does_not_go_with_doubles(kernel: Any, state_dtype: Any) -> None:
    p = parameter(4, dtype=torch.float32)
    optimizer = HVAdam([p], kernel=kernel, state_dtype=state_dtype)
    feed(optimizer, range(2))
    p.grad, p.data = None, p.data.double()
    set_grads([p], 2)
    kept = p.detach().clone()
    with pytest.raises(RuntimeError, match=r"a parameter is now torch\.float64"):
        optimizer.step()
    assert torch.equal(p, kept)
    p.grad, p.data = None, p.data.bfloat16()
    feed(optimizer, [2])


@pytest.mark.parametrize("kernel", KERNELS)
def test_half_precision_in_mid_training_keeps_the_state(kernel: Any) -> None:
    p = parameter(4, dtype=torch.float32)
    optimizer = HVAdam([p], kernel=kernel)
    feed(optimizer, range(2))
    p.grad, p.data = None, p.data.bfloat16()
    set_grads([p], 2)
    judged_step(optimizer)
    assert optimizer.state[p]["hidden"].dtype == torch.float32


@pytest.mark.parametrize("scope", SCOPES)
def test_lazy_modules_are_accepted_before_their_first_forward_pass(
    scope: Any, assert_same: Same
) -> None:
    models = [nn.Sequential(nn.LazyLinear(3), nn.LazyLinear(1)) for _ in range(2)]
    x = torch.randn(8, 2, generator=torch.Generator().manual_seed(0))
    early = HVAdam(models[0].parameters(), scope=scope)
    early.step()
    early.load_state_dict(early.state_dict())
    assert early.diagnostics().keys() <= {"global", "group 0"}
    for model in models:
        model(x)
    models[1].load_state_dict(models[0].state_dict())
    late = HVAdam(models[1].parameters(), scope=scope)
    for _ in range(3):
        for model, optimizer in zip(models, (early, late), strict=True):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
    assert_same(models[0].state_dict(), models[1].state_dict())


def test_a_lone_lazy_parameter() -> None:
    lazy = nn.UninitializedParameter()
    optimizer = HVAdam([lazy])
    optimizer.step()
    lazy.materialize((2,))
    feed(optimizer, range(2))
    with pytest.raises(TypeError, match="floating point or complex, got torch.int64"):  # noqa: RUF043
        HVAdam([nn.UninitializedParameter(False, dtype=torch.int64)])  # pyright: ignore[reportCallIssue]
