"""Names, builders and messages of the registry."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn

from hvadam_bench import contenders


def weights(*shape: int) -> list[nn.Parameter]:
    return [nn.Parameter(torch.ones(shape))]


def test_names_are_in_the_order_of_tables() -> None:
    names = contenders.names()
    assert len(names) == len(set(names))
    known = [name for name in names if name in contenders.ORDER]
    assert known == [name for name in contenders.ORDER if name in names]
    assert names == [*known, *sorted(set(names) - set(known))]
    assert {contenders.OURS, contenders.REFERENCE, *contenders.ABLATION} <= set(names)


def test_specs_load_no_framework() -> None:
    code = """
import sys
from hvadam_bench import contenders
specs = [contenders.get(name) for name in contenders.names()]
assert all(spec.paper and spec.defaults["lr"] for spec in specs)
assert "torch" not in sys.modules, "torch came along"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("adabelif", {}, ValueError, "there is no contender 'adabelif'; did you mean 'adabelief'?"),
        ("Adam", {}, ValueError, "there is no contender 'Adam'; did you mean 'adam'?"),
        ("xyz", {}, ValueError, "there is no contender 'xyz'; there are sgd, sgd_ema, adam, "),
        ("sgd", {"momentun": 0}, TypeError, "sgd has no option 'momentun'; did you mean 'momen"),
        (
            "sgd",
            {"x": 0},
            TypeError,
            "sgd has no option 'x'; there are lr, momentum, weight_decay.",
        ),
    ],
)
def test_unknown_words(name: str, options: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error) as caught:
        contenders.create(name, weights(2), **options)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_groups_may_not_invent_options() -> None:
    with pytest.raises(TypeError, match="adam has no option 'weigth_decay'; did you mean 'weight"):
        contenders.create("adam", [{"params": weights(2), "weigth_decay": 0.1}])


@pytest.mark.parametrize("nothing", [[], [{"params": []}], nn.ReLU()])
def test_no_parameters(nothing: Any) -> None:
    with pytest.raises(ValueError, match="adam was given no parameters"):
        contenders.create("adam", nothing)


def test_takes_what_torch_takes() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    model[0].bias.requires_grad_(False)
    (group,) = contenders.create("adam", model, lr=0.5).param_groups
    assert [tuple(p.shape) for p in group["params"]] == [(2, 3), (2,), (2,)]
    assert group["lr"] == 0.5
    for params in (model.parameters(), model.named_parameters(), [{"params": model.parameters()}]):
        (group,) = contenders.create("adam", params).param_groups
        assert len(group["params"]) == 4
    p = model[0].weight
    (group,) = contenders.create("adam", [{"params": p, "name": "first"}]).param_groups
    assert group["params"] == [p]
    with pytest.raises(
        TypeError, match=r"adam: params must be a model, parameters or param groups"
    ):
        contenders.create("adam", p)


def test_decay_spares_biases_and_norms() -> None:
    model = nn.Sequential(nn.Embedding(5, 3), nn.Conv1d(3, 2, 1), nn.LayerNorm(2))
    decayed, spared = contenders.decay_groups(model, 0.1)
    assert [p.ndim for p in decayed["params"]] == [2, 3]
    assert [p.ndim for p in spared["params"]] == [1, 1, 1]
    optimizer = contenders.create("adamw", [decayed, spared], lr=0.5)
    before = [p.detach().clone() for p in model.parameters()]
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    for p, old in zip(model.parameters(), before, strict=True):
        torch.testing.assert_close(p.detach(), 0.95 * old if p.ndim > 1 else old)


# Edges of the single-tensor baselines, and what their published code does there.
def parameter(*values: float) -> nn.Parameter:
    return nn.Parameter(torch.tensor(values, dtype=torch.float64))


@pytest.mark.parametrize("rectify", [False, True])
@pytest.mark.parametrize("mode", ["coupled", "decoupled"])
def test_adabelief_is_the_authors_package(rectify: bool, mode: str) -> None:
    package = pytest.importorskip("adabelief_pytorch")
    torch.manual_seed(0)
    p, q = parameter(1.0, -2.0, 3.0), parameter(1.0, -2.0, 3.0)
    ours = contenders.create(
        "adabelief", [p], weight_decay=0.1, weight_decay_mode=mode, rectify=rectify
    )
    theirs = package.AdaBelief(
        [q],
        lr=1e-3,
        eps=1e-8,
        weight_decay=0.1,
        weight_decouple=mode == "decoupled",
        rectify=rectify,
        print_change_log=False,
    )
    for _ in range(20):
        p.grad = torch.randn(3, dtype=torch.float64)
        q.grad = p.grad.clone()
        ours.step()
        theirs.step()
        torch.testing.assert_close(p, q, rtol=0, atol=1e-15)


def test_adabound_scales_its_bounds_with_the_schedule() -> None:
    """Bounds that have closed leave final_lr·lr/base_lr, also after a checkpoint."""
    p = parameter(1.0)
    optimizer: Any = contenders.create("adabound", [p], lr=0.01, gamma=1e12, betas=(0.0, 0.999))
    optimizer.param_groups[0]["lr"] = 0.002
    for loaded in (False, True):
        if loaded:
            state = copy.deepcopy(optimizer.state_dict())
            optimizer = contenders.create("adabound", [p], lr=0.002, gamma=1e12)
            optimizer.load_state_dict(state)
        before = p.item()
        p.grad = torch.tensor([3.0], dtype=torch.float64)
        optimizer.step()
        assert before - p.item() == pytest.approx(0.1 * 0.2 * 3.0, rel=1e-9)


def test_adai_averages_over_all_groups() -> None:
    """The mean of second moments spans groups: large neighbours raise a small one's inertia."""
    steps = []
    for neighbour in (1.0, 10.0):
        p, q = parameter(0.0), parameter(0.0)
        optimizer = contenders.create("adai", [{"params": [p]}, {"params": [q]}])
        for sign in (1.0, -1.0):
            p.grad = torch.full_like(p, sign)
            q.grad = torch.full_like(q, neighbour)
            optimizer.step()
        steps.append(p.item())
    # w is the share of the last gradient: 0.1 among equals, 0.1 · 1 / 50.5 beside a large one.
    for step, w in zip(steps, (0.1, 0.1 / 50.5), strict=True):
        m, q = w * (1 - w) - w, w + w * (1 - w)
        assert step == pytest.approx(-1 - m / q, rel=1e-9)


@pytest.mark.parametrize("name", ["adai", "msvag", "fromage", "yogi", "padam", "adabelief"])
def test_zero_gradients_move_nothing(name: str) -> None:
    p, zero = parameter(1.0, -2.0), parameter(0.0, 0.0)
    optimizer = contenders.create(name, [p, zero], lr=1e-3)
    for _ in range(3):
        p.grad, zero.grad = torch.zeros_like(p), torch.zeros_like(zero)
        optimizer.step()
    # Yogi's first moment starts above 0; Fromage shrinks by √(1 + lr²).
    torch.testing.assert_close(p, parameter(1.0, -2.0), rtol=0, atol=4e-6)
    assert zero.abs().max() < 4e-6
    p.grad = torch.ones_like(p)
    optimizer.step()
    assert p.isfinite().all()


def test_msvag_trusts_its_first_gradient_even_in_float32() -> None:
    p = nn.Parameter(torch.zeros(1000))
    p.grad = torch.linspace(0.1, 5, 1000)
    contenders.create("msvag", [p], lr=1.0).step()
    torch.testing.assert_close(p.detach(), -p.grad, rtol=3e-7, atol=0)


def test_fromage_steps_are_a_share_of_the_norm() -> None:
    torch.manual_seed(0)
    p, zero = nn.Parameter(torch.randn(5, 3)), parameter(0.0, 0.0)
    before = p.detach().clone()
    p.grad = 1e-3 * torch.randn(5, 3)
    zero.grad = torch.tensor([1.0, -2.0], dtype=torch.float64)
    contenders.create("fromage", [p, zero], lr=0.1).step()
    grown = (1 + 0.1**2) ** 0.5
    assert ((p.detach() * grown - before).norm() / before.norm()).item() == pytest.approx(
        0.1, rel=1e-5
    )
    torch.testing.assert_close(zero, -0.1 * zero.grad / grown)  # from 0: a plain step of SGD


@pytest.mark.parametrize("name", ["yogi", "lookahead"])
def test_sparse_gradients_are_refused_before_anything_moves(name: str) -> None:
    dense, sparse = parameter(1.0), parameter(1.0, 2.0)
    dense.grad, sparse.grad = torch.ones_like(dense), torch.ones_like(sparse).to_sparse()
    optimizer = contenders.create(name, [dense, sparse])
    with pytest.raises(RuntimeError, match="gradients must be dense, got a sparse one"):
        optimizer.step()
    assert dense.item() == 1.0


@pytest.mark.parametrize("name", ["msvag", "swa"])
def test_later_groups_are_checked_too(name: str) -> None:
    optimizer = contenders.create(name, [parameter(1.0)])
    with pytest.raises(ValueError, match="lr must be >= 0 and finite, got -1"):
        optimizer.add_param_group({"params": [parameter(1.0)], "lr": -1.0})
    assert len(optimizer.param_groups) == 1
