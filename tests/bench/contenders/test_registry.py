"""Names, builders and messages of the registry."""

from __future__ import annotations

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
