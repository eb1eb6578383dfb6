"""Odd tensors under the native kernel: layouts, lazy views, wrappers, bad numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from judge import judged_step
from native_twin import (
    STATES,
    assert_same,
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


def odd_tensors() -> dict[str, tuple[nn.Parameter, Tensor, bool]]:
    """A parameter, a gradient, and whether the native kernel takes the two."""
    generator = torch.Generator().manual_seed(6)

    def randn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype)

    any_grad = parameter(6)
    any_grad.grad_dtype = None  # torch then lets a gradient have a dtype of its own
    aligned_to_bytes = torch.frombuffer(bytearray(41), dtype=torch.float32, offset=1)
    aligned_to_bytes.copy_(randn(10))
    deep = (2,) + (1,) * 15 + (3,)
    return {
        "dense": (parameter(700), randn(700), True),
        "0-dim": (parameter(), randn(), True),
        "empty": (parameter(0, 3), randn(0, 3), True),
        "complex": (parameter(9, dtype=torch.complex64), randn(9, dtype=torch.complex64), True),
        "half": (parameter(9, dtype=torch.float16), randn(9).half(), True),
        "double gradient": (any_grad, randn(6, dtype=torch.float64), True),
        "double": (parameter(6, dtype=torch.float64), randn(6, dtype=torch.float64), True),
        "16 dimensions": (parameter(*deep[1:]), randn(*deep[1:]), True),
        "17 dimensions": (parameter(*deep), randn(*deep), False),
        "every other": (nn.Parameter(randn(6, 8)[:, ::2]), randn(6, 4), False),
        "both every other": (nn.Parameter(randn(6, 8)[:, ::2]), randn(6, 8)[:, ::2], False),
        "expanded gradient": (parameter(4, 5), randn(5).expand(4, 5), False),
        "gradient of one number": (parameter(4, 5), randn().expand(4, 5), False),
        "transposed gradient": (parameter(4, 5), randn(5, 4).t(), False),
        "both transposed": (nn.Parameter(randn(5, 4).t()), randn(5, 4).t(), True),
        "negative view": (
            parameter(5),
            torch.imag(randn(5, dtype=torch.complex64).conj()),
            False,
        ),
        "dense negative view": (parameter(5), torch._neg_view(randn(5)), False),
        "aligned to bytes": (nn.Parameter(aligned_to_bytes), randn(10), False),
        "large, transposed gradient": (parameter(70, 80), randn(80, 70).t(), False),
    }


@pytest.mark.parametrize("options", [{}, {"max_grad_norm": 1.0}], ids=str)
def test_odd_tensors_join_the_same_step(options: dict[str, Any], taken: list[list[bool]]) -> None:
    """All share one hidden vector, which the judge follows."""
    odd = odd_tensors()
    assert odd["negative view"][1].is_neg()
    assert odd["aligned to bytes"][0].data_ptr() % 4
    optimizer = HVAdam([p for p, _, _ in odd.values()], kernel="native", lr=0.01, **options)
    for step in range(3):
        for p, g, _ in odd.values():
            p.grad = g if step == 0 else g.mul(1 - 0.1 * step) if g.is_neg() else g
        before = [p.detach().clone() for p, _, _ in odd.values()]
        judged_step(optimizer)
        for (p, _, _), old in zip(odd.values(), before, strict=True):
            assert p.numel() == 0 or bool((p != old).all())
        if step == 0:
            assert dict(zip(odd, taken[-1], strict=True)) == {k: x[2] for k, x in odd.items()}


def lazy_zeros(like: Tensor) -> Tensor:
    return torch._efficientzerotensor(like.shape, dtype=like.dtype)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("dtype", "lazy"),
    [
        (torch.complex64, torch.conj),
        (torch.complex64, lambda x: torch._neg_view(x.conj())),
        (torch.float32, torch._neg_view),
        (torch.float32, lazy_zeros),
    ],
    ids=["conjugate", "negative conjugate", "negative", "zeros"],
)
def test_lazy_gradients_are_read_as_what_they_stand_for(
    dtype: torch.dtype, lazy: Callable[[Tensor], Tensor], taken: list[list[bool]]
) -> None:
    """Their memory holds something else: the opposite sign, or nothing at all."""
    found: list[list[Tensor]] = []
    for resolve in (False, True):
        params = [parameter(40, dtype=dtype), parameter(300)]
        optimizer = HVAdam(params, kernel="native")
        for step in range(3):
            set_grads(params, step)
            assert params[0].grad is not None
            grad = lazy(params[0].grad)
            params[0].grad = grad + 0 if resolve else grad
            optimizer.step()
            assert taken[-1] == [resolve, True]
        found.append([x.detach() for x in memory_of(optimizer)])
    for x, y in zip(*found, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-7)


def test_tensors_that_wrap_others_are_left_to_torch(taken: list[list[bool]]) -> None:
    """They have no memory of their own; sharded parameters are such tensors."""
    from torch.testing._internal.two_tensor import TwoTensor

    plain = parameter(6)
    wrapped = nn.Parameter(TwoTensor(plain.detach().clone(), plain.detach().clone()))
    kernel: Any
    for kernel, p in (("loop", plain), ("native", wrapped)):
        optimizer = HVAdam([p], kernel=kernel)
        for factor in (1.0, 2.0, -0.5):
            p.grad = None
            (factor * p.square()).sum().backward()
            optimizer.step()
    assert not any(map(any, taken))
    for part in (wrapped.a, wrapped.b):  # pyright: ignore[reportAttributeAccessIssue]
        torch.testing.assert_close(part, plain.detach(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("state_dtype", STATES)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_no_rate_no_move_whatever_the_gradient(bad: float, state_dtype: Any) -> None:
    params = [parameter(20), parameter(33, dtype=torch.bfloat16)]
    before = [p.detach().clone() for p in params]
    optimizer = HVAdam(params, lr=0.0, kernel="native", state_dtype=state_dtype)
    for step in range(3):
        set_grads(params, step)
        for p in params:
            assert p.grad is not None
            p.grad[::5] = bad
        optimizer.step()
    assert_same(list(params), before)


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    ndim = draw(st.integers(0, 4))
    return {
        "shape": draw(st.lists(st.integers(0, 4), min_size=ndim, max_size=ndim)),
        "orders": draw(st.tuples(*[st.permutations(range(ndim))] * 2)),
        "gaps": draw(st.tuples(*[st.sampled_from([0] * 6 + [1, 2])] * 2)),
        "offsets": draw(st.tuples(*[st.integers(0, 3)] * 2)),
    }


def laid_out(values: Tensor, order: list[int], gap: int, offset: int) -> Tensor:
    """The values with their dimensions in that order in memory, with gaps, from an offset on."""
    sizes = [values.shape[i] for i in order]
    sizes[-1:] = [sizes[-1] + gap] if sizes else []
    count = 1
    for size in sizes:
        count *= size
    memory = torch.full((offset + count,), torch.nan)[offset:].view(sizes)
    view = memory[..., : sizes[-1] - gap] if sizes else memory
    view = view.permute(sorted(range(len(order)), key=order.__getitem__))
    return view.copy_(values)


@given(layout=layouts())
def test_drawn_layouts(layout: dict[str, Any]) -> None:
    generator = torch.Generator().manual_seed(8)
    values = [torch.randn(layout["shape"], generator=generator) for _ in range(2)]
    theta, g = (
        laid_out(x, list(layout["orders"][i]), layout["gaps"][i], layout["offsets"][i])
        for i, x in enumerate(values)
    )
    p, beside = nn.Parameter(theta), parameter(10)
    p.grad, beside.grad = g, torch.ones(10)
    optimizer = HVAdam([p, beside], kernel="native")
    for _ in range(2):
        judged_step(optimizer)
