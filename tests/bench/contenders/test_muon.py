"""Whom Muon gives to AdamW, and that it is torch's Muon up to bfloat16."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

from hvadam_bench import contenders


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(7, 4)
        self.position = nn.Parameter(torch.zeros(1, 5, 4))
        self.hidden = nn.Linear(4, 4)
        self.kernel = nn.Conv2d(2, 3, 3)
        self.head = nn.Linear(4, 2)


@pytest.mark.parametrize("grouped", [False, True])
def test_matrices_inside_a_model_are_muons(grouped: bool) -> None:
    model = Model()
    params = contenders.decay_groups(model, 0.1) if grouped else model
    optimizer = contenders.create("muon", params, model=model)
    names = {p: name for name, p in model.named_parameters()}
    found = {names[p]: group["method"] for group in optimizer.param_groups for p in group["params"]}
    assert len(found) == len(names)
    assert {name for name, method in found.items() if method == "muon"} == {
        "hidden.weight",
        "kernel.weight",
    }


def test_without_a_model_the_shape_decides() -> None:
    optimizer = contenders.create("muon", Model().parameters())
    muon, adamw = optimizer.param_groups
    assert [tuple(p.shape) for p in muon["params"]] == [(7, 4), (4, 4), (3, 2, 3, 3), (2, 4)]
    assert [tuple(p.shape) for p in adamw["params"]] == [(1, 5, 4), (4,), (3,), (2,)]


def test_a_normalised_embedding_is_still_one() -> None:
    model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 4), nn.Linear(4, 2))
    for layer in model:
        spectral_norm(layer)
    methods = [g["method"] for g in contenders.create("muon", model).param_groups]
    sizes = [len(g["params"]) for g in contenders.create("muon", model).param_groups]
    assert dict(zip(methods, sizes, strict=True)) == {"muon": 1, "adamw": 4}


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="torch has no Muon before 2.9")
@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_is_torchs_muon_up_to_bfloat16(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    ours = nn.Parameter(torch.randn(shape))
    theirs = nn.Parameter(ours.detach().clone())
    options: dict[str, Any] = {"lr": 0.01, "momentum": 0.95, "weight_decay": 0.1}
    optimizer = contenders.create("muon", [ours], **options)
    peer = torch.optim.Muon([theirs], adjust_lr_fn="match_rms_adamw", **options)
    for _ in range(10):
        before = ours.detach().clone()
        ours.grad = torch.randn(shape)
        theirs.grad = ours.grad.clone()
        optimizer.step()
        peer.step()
        step = (ours.detach() - before).norm()
        assert (ours - theirs).norm() < 0.05 * step  # bfloat16 keeps 8 bits, over five rounds
        theirs.data.copy_(ours.data)
