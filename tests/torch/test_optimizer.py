"""HVAdam as the method: identities, oracles, traces, and what must never happen."""

from __future__ import annotations

import math
from typing import Any, get_args

import authors
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hvadam import HVAdam, ablation
from hvadam.torch.kernels import KERNELS as ALL_KERNELS
from hvadam.torch.kernels import KernelName

KERNELS = ["loop", "foreach", "auto"]


def parameter(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return nn.Parameter(torch.randn(shape, generator=generator, dtype=dtype))


def run(optimizer: torch.optim.Optimizer, grads: list[list[Tensor]], after: Any = None) -> None:
    """Feed recorded gradients, one list per step."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    for row in grads:
        for p, g in zip(params, row, strict=True):
            p.grad = g.clone().reshape(p.shape)
        optimizer.step()
        if after is not None:
            after()


def gradients(steps: int, *sizes: int, seed: int = 0) -> list[list[Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    trend = [torch.randn(n, generator=generator, dtype=torch.float64) for n in sizes]
    return [
        [t + torch.randn(t.shape, generator=generator, dtype=torch.float64) for t in trend]
        for _ in range(steps)
    ]


@pytest.mark.filterwarnings("ignore:HVAdam. eps")  # theirs too
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("trace", authors.load(), ids=lambda trace: trace.kind)
def test_reproduces_the_authors_traces(trace: authors.Trace, kernel: Any) -> None:
    params = [nn.Parameter(torch.from_numpy(theta.copy())) for theta in trace.theta0]
    optimizer = HVAdam(
        [{"params": [params[i] for i in group]} for group in trace.groups],
        scope="group",
        restart_rule="authors",
        kernel=kernel,
        **trace.options,
    )
    for t, grads in enumerate(trace.grads, start=1):
        for p, g in zip(params, grads, strict=True):
            p.grad = torch.from_numpy(g.copy())
        optimizer.step()
        if t in trace.kept:
            theta = np.concatenate([p.detach().numpy().ravel() for p in params])
            assert abs(theta - trace.kept[t]).max() <= authors.TOLERANCE * abs(trace.kept[t]).max()
            deltas = [x["alignment_ema"] for x in optimizer.diagnostics().values()]
            np.testing.assert_allclose(deltas, trace.deltas[t], rtol=0, atol=1e-8)
    assert sum(x["restarts"] for x in optimizer.diagnostics().values()) == trace.restarts


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_first_step_is_a_sign_step(gamma: float) -> None:
    p = parameter(50)
    before = p.detach().clone()
    p.grad = parameter(50, seed=1).detach()
    HVAdam([p], lr=0.01, gamma=gamma, eps=1e-20).step()
    expected = 0.01 * math.sqrt(0.9**2 + gamma) * p.grad.sign()
    torch.testing.assert_close(before - p.detach(), expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("kernel", KERNELS)
def test_ablation_level_0_is_adam(kernel: Any, weight_decay: float) -> None:
    ours, theirs = parameter(7), parameter(7)
    grads = gradients(100, 7)
    hvadam = HVAdam(
        [ours],
        lr=0.01,
        eps=1e-8,
        weight_decay=weight_decay,
        weight_decay_mode="coupled",
        kernel=kernel,
        **ablation(0),
    )
    run(hvadam, grads)
    run(torch.optim.Adam([theirs], lr=0.01, eps=1e-8, weight_decay=weight_decay), grads)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_v_pinned_to_m_is_adabelief() -> None:
    """γ = 0 and no hidden step: with v = m the ratio is p/(p + ε), so s averages (g - m)²."""
    p, oracle = parameter(9), parameter(9).detach().clone()
    optimizer = HVAdam([p], lr=0.01, gamma=0.0, eps=1e-16, hidden_scale=0.0)
    m, s = torch.zeros(9, dtype=torch.float64), torch.zeros(9, dtype=torch.float64)
    for t, (g,) in enumerate(gradients(50, 9), start=1):
        p.grad = g
        m = 0.9 * m + 0.1 * g
        s = 0.999 * s + 0.001 * (g - m) ** 2 + 1e-16
        oracle -= 0.01 * (m / (1 - 0.9**t)) / ((s / (1 - 0.999**t)).sqrt() + 1e-16)
        if t > 1:
            optimizer.state[p]["hidden"].copy_(m)
        else:  # the first step has no state yet: v = 0, which the ratio answers by 1/β1²
            s = 0.001 * g**2 / 0.81
            oracle = parameter(9).detach() - 0.01 * g / ((s / 0.001).sqrt())
        optimizer.step()
        torch.testing.assert_close(p.detach(), oracle, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_groups_order_and_shape_do_not_matter(kernel: Any) -> None:
    """One hidden vector over all parameters: the trajectory is that of the concatenation."""
    sizes = (6, 4, 2)
    grads = gradients(60, *sizes)
    start = [parameter(n, seed=n).detach() for n in sizes]

    def trained(groups: list[list[int]], shapes: dict[int, tuple[int, ...]]) -> list[Tensor]:
        params = [
            nn.Parameter(x.clone().reshape(shapes.get(i, x.shape))) for i, x in enumerate(start)
        ]
        order = [i for group in groups for i in group]
        optimizer = HVAdam(
            [{"params": [params[i] for i in group]} for group in groups], lr=0.01, kernel=kernel
        )
        run(optimizer, [[row[i] for i in order] for row in grads])
        return [p.detach().flatten() for p in params]

    expected = trained([[0, 1, 2]], {})
    for groups, shapes in (
        ([[0], [1, 2]], {}),
        ([[2, 0], [1]], {}),
        ([[2], [1], [0]], {}),
        ([[0, 1, 2]], {0: (2, 3), 1: (2, 1, 2)}),
    ):
        torch.testing.assert_close(trained(groups, shapes), expected, rtol=1e-9, atol=1e-11)

    whole = nn.Parameter(torch.cat(start))
    run(HVAdam([whole], lr=0.01, kernel=kernel), [[torch.cat(row)] for row in grads])
    torch.testing.assert_close(whole.detach(), torch.cat(expected), rtol=1e-9, atol=1e-11)


def test_invariants_of_the_hidden_vector() -> None:
    p = parameter(20)
    optimizer = HVAdam([p], betas=(0.9, 0.8), restart_threshold=0.9)
    norms = [math.inf]

    def check() -> None:
        found = optimizer.diagnostics()["global"]
        state = optimizer.state[p]
        v, m_hat = state["hidden"], state["exp_avg"] / (1 - 0.9 ** state["step"].item())
        if found["steps_since_restart"] == 0:
            norms.append(math.inf)
            torch.testing.assert_close(v, m_hat)
        assert 0 <= found["alignment"] <= 1
        assert v.norm() <= norms[-1] * (1 + 1e-12)
        torch.testing.assert_close(v @ m_hat, v @ v, rtol=1e-9, atol=0)
        assert found["hidden_norm"] == pytest.approx(v.norm().item())
        assert found["exp_avg_norm"] == pytest.approx(m_hat.norm().item())
        assert found["alignment"] == pytest.approx((v @ m_hat / v.norm() / m_hat.norm()).item())
        norms.append(v.norm().item())

    turning = gradients(40, 20) + [[-g for g in row] for row in gradients(60, 20, seed=1)]
    run(optimizer, turning, after=check)
    assert optimizer.diagnostics()["global"]["restarts"] >= 1


def test_diagnostics_name_the_parts_of_the_update() -> None:
    a, b = parameter(5), parameter(3, seed=1)
    optimizer = HVAdam([{"params": [a]}, {"params": [b], "lr": 0.1}], lr=0.01)
    run(optimizer, gradients(20, 5, 3))
    before = [a.detach().clone(), b.detach().clone()]
    run(optimizer, gradients(1, 5, 3, seed=5))
    optimizer.param_groups[0]["lr"] = 123.0  # a scheduler's next value must not matter
    found = optimizer.diagnostics()
    assert list(found) == ["global"]
    assert all(isinstance(value, float) for value in found["global"].values())
    hidden = [
        lr * found["global"]["hidden_gain"] * optimizer.state[p]["hidden"]
        for p, lr in ((a, 0.01), (b, 0.1))
    ]
    adaptive = [x - p.detach() - h for x, p, h in zip(before, (a, b), hidden, strict=True)]
    assert found["global"]["hidden_step_norm"] == pytest.approx(torch.cat(hidden).norm().item())
    assert found["global"]["adaptive_step_norm"] == pytest.approx(torch.cat(adaptive).norm().item())
    parts = [torch.cat(x).norm().item() for x in (hidden, adaptive)]
    assert found["global"]["hidden_share"] == pytest.approx(parts[0] / sum(parts))


def test_diagnostics_name_the_scopes() -> None:
    layer = nn.Linear(3, 2)
    layer(torch.ones(3)).sum().backward()
    for scope, names in (
        ("global", ["global"]),
        ("group", ["group 0"]),
        ("tensor", ["weight", "bias"]),
    ):
        optimizer = HVAdam(layer.named_parameters(), scope=scope)  # pyright: ignore
        optimizer.step()
        assert list(optimizer.diagnostics()) == names
    optimizer = HVAdam(layer.parameters(), scope="tensor")
    optimizer.step()
    assert list(optimizer.diagnostics()) == ["group 0, tensor 0", "group 0, tensor 1"]


@pytest.mark.parametrize("scope", ["global", "group", "tensor"])
def test_diagnostics_leave_out_what_was_dropped_from_the_state(scope: Any) -> None:
    a, b = parameter(5), parameter(3, seed=1)
    optimizer = HVAdam([a, b], scope=scope)
    run(optimizer, gradients(3, 5, 3))
    whole = optimizer.diagnostics()
    optimizer.state.pop(b)
    left = optimizer.diagnostics()
    assert b not in optimizer.state
    first = next(iter(whole))
    assert 0 < left[first]["adaptive_step_norm"] <= whole[first]["adaptive_step_norm"]
    assert len(left) == 1
    run(optimizer, gradients(1, 5, 3))
    assert optimizer.state[b]["step"] == 1


def test_restarts_and_holds_are_counted() -> None:
    p = parameter(4)
    optimizer = HVAdam([p], betas=(0.0, 0.5), restart_threshold=0.9)
    zero = [[torch.zeros(4, dtype=torch.float64)]]
    run(optimizer, zero * 3)
    found = optimizer.diagnostics()["global"]
    assert (found["step"], found["holds"], found["steps_since_restart"]) == (3, 3, -1)
    run(optimizer, [[g] for g in torch.eye(4, dtype=torch.float64)])
    assert optimizer.diagnostics()["global"]["restarts"] == 2
    run(optimizer, [[torch.full((4,), math.nan, dtype=torch.float64)]])
    assert optimizer.diagnostics()["global"]["holds"] == 4


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_bad_gradient_harms_its_own_parameter_only(kernel: Any, bad: float) -> None:
    for scope in ("global", "group", "tensor"):
        hurt, well = parameter(3), parameter(4, seed=1)
        optimizer = HVAdam([hurt, well], kernel=kernel, scope=scope)
        grads = gradients(8, 3, 4)
        grads[4][0][1] = bad
        run(optimizer, grads)
        assert well.isfinite().all()
        assert all(x.isfinite().all() for x in optimizer.state[well].values())
        assert hurt.isfinite().tolist() == [True, False, True]  # as Adam


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_zero_gradients_are_harmless(kernel: Any, shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    for pattern in ("000000", "100000", "110011", "001100"):
        p = parameter(*shape, dtype=torch.float32)
        optimizer = HVAdam([p], kernel=kernel, gamma=0.0)
        for digit in pattern:
            p.grad = int(digit) * torch.randn(shape, generator=generator)
            optimizer.step()
        assert p.isfinite().all()
        assert all(x.isfinite().all() for x in optimizer.state[p].values())


def test_zero_lr_with_zero_gradients_starts_nothing() -> None:
    """How distributed checkpointing makes a fresh optimizer create its state."""
    p = parameter(4)
    before = p.detach().clone()
    optimizer = HVAdam([p], lr=0.0, weight_decay=0.1)
    p.grad = torch.zeros_like(p)
    optimizer.step()
    assert torch.equal(p, before)
    assert optimizer.diagnostics()["global"]["steps_since_restart"] == -1
    assert not optimizer.state[p]["hidden"].any()


def test_scalars_are_shared_by_all_groups() -> None:
    a, b, c = parameter(3), parameter(2, seed=1), parameter(2, seed=2)
    optimizer = HVAdam([{"params": [a]}, {"params": [b]}])
    run(optimizer, gradients(5, 3, 2))
    optimizer.add_param_group({"params": [c]})
    x, y, z = (group["scalars"] for group in optimizer.param_groups)
    assert torch.equal(x, y)
    assert torch.equal(x, z)
    assert x.data_ptr() != z.data_ptr()
    a.grad = b.grad = None
    c.grad = torch.ones_like(c)
    optimizer.step()  # only the newcomer moves, and all groups still agree
    assert all(torch.equal(group["scalars"], z) for group in optimizer.param_groups)
    assert z[0] == 6


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ({"betas": (0.9, 0.99)}, r"betas\[1\] must be equal in all param groups"),
        ({"restart_threshold": 0.2}, "restart_threshold must be equal in all"),
        ({"hidden_gain": "linear"}, "hidden_gain must be equal in all"),
        ({"scope": "group"}, "scope is set for the whole optimizer"),
        ({"restart_rule": "authors"}, "restart_rule is set for the whole optimizer"),
        ({"kernel": "loop"}, "kernel is set for the whole optimizer"),
        ({"hidden_gain": lambda delta: delta}, "hidden_gain must be one of"),
        ({"eps": -1.0}, "eps must be"),
    ],
)
def test_groups_that_disagree_are_refused(override: dict[str, Any], message: str) -> None:
    a, b = parameter(3), parameter(2)
    with pytest.raises(ValueError, match=message):
        HVAdam([{"params": [a]}, {"params": [b], **override}])
    optimizer = HVAdam([a])
    with pytest.raises(ValueError, match=message):
        optimizer.add_param_group({"params": [b], **override})
    assert len(optimizer.param_groups) == 1


def test_a_group_changed_later_to_disagree_is_refused_before_anything_moves() -> None:
    a, b = parameter(3), parameter(2)
    optimizer = HVAdam([{"params": [a]}, {"params": [b]}])
    run(optimizer, gradients(2, 3, 2))
    optimizer.param_groups[1]["betas"] = (0.9, 0.5)
    before = [x.clone() for p in (a, b) for x in (p.detach(), *optimizer.state[p].values())]
    with pytest.raises(ValueError, match=r"betas\[1\] must be equal"):
        optimizer.step()
    after = [x for p in (a, b) for x in (p.detach(), *optimizer.state[p].values())]
    assert all(torch.equal(x, y) for x, y in zip(before, after, strict=True))


def test_groups_own_their_scalars_under_group_scope() -> None:
    a, b = parameter(3), parameter(2, seed=1)
    optimizer = HVAdam(
        [{"params": [a]}, {"params": [b], "betas": (0.9, 0.5), "hidden_gain": "linear"}],
        scope="group",
    )
    run(optimizer, gradients(6, 3, 2))
    found = optimizer.diagnostics()
    assert list(found) == ["group 0", "group 1"]
    assert found["group 0"]["hidden_gain"] == pytest.approx(
        10 ** (6 * found["group 0"]["alignment_ema"] - 3)
    )
    assert found["group 1"]["hidden_gain"] == pytest.approx(
        found["group 1"]["alignment_ema"] / 0.9 * 10
    )


def test_lazily_conjugated_or_negated_parameters_are_refused() -> None:
    """Kernels that write memory would write through the pending sign."""
    x = torch.randn(3, dtype=torch.complex64)
    for lazy in (x.conj(), x.conj().imag):
        with pytest.raises(ValueError, match="must not be conjugated or negated lazily"):
            HVAdam([nn.Parameter(lazy)])
    HVAdam([nn.Parameter(x.conj().resolve_conj())])


def test_bounds_clamp_after_both_steps() -> None:
    p = nn.Parameter(torch.tensor([0.0, 0.999, 5.0]))
    optimizer = HVAdam([p], lr=0.1, bounds=(-1.0, 1.0))
    p.grad = torch.tensor([1.0, -1.0, 0.0])
    optimizer.step()
    assert p[0] < 0
    assert p[1] == 1.0
    assert p[2] == 1.0


@pytest.mark.parametrize("kernel", ["foreach", "auto", "loop"])
def test_no_wait_for_the_device(kernel: Any) -> None:
    """Tensors on the meta device have no values: reading one to the host would raise."""
    params = [nn.Parameter(torch.empty(shape, device="meta")) for shape in ((3, 4), (5,))]
    for scope in ("global", "tensor"):
        optimizer = HVAdam(params, kernel=kernel, scope=scope, bounds=(-1.0, 1.0), weight_decay=0.1)
        for lr in (0.1, torch.empty((), device="meta")):
            optimizer.param_groups[0]["lr"] = lr
            for p in params:
                p.grad = torch.empty_like(p)
            optimizer.step()


def test_the_type_of_kernel_names_every_kernel() -> None:
    assert set(get_args(KernelName)) == {"auto", *ALL_KERNELS}


def test_what_follows_betas_is_given_by_name() -> None:
    """Written for AdamW, whose eps of 1e-8 would act like 3e-3 and whose decay would be gamma."""
    for positional in ((1e-8,), (1e-8, 0.01)):
        with pytest.raises(TypeError, match="positional arguments"):
            HVAdam([parameter(3)], 1e-3, (0.9, 0.999), *positional)  # pyright: ignore
    assert HVAdam([parameter(3)], 1e-3, (0.8, 0.99)).defaults["betas"] == (0.8, 0.99)
