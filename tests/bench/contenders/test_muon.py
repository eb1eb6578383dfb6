"""Whom Muon gives to AdamW, and that it is torch's Muon up to bfloat16."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm
from torch.optim.swa_utils import SWALR, AveragedModel

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


# SWA and Lookahead: what the contract suite cannot see.
START, EVERY = 4, 3
HORIZON = 16


def test_swa_is_the_average_of_torchs_swa_utils() -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 2).double()
    averaged = AveragedModel(model)
    optimizer = contenders.create("swa", model, horizon=HORIZON, start=START / HORIZON, every=EVERY)
    for t in range(1, 15):
        optimizer.zero_grad()
        model(torch.randn(5, 4, dtype=torch.float64)).square().sum().backward()
        optimizer.step()
        if t >= START and (t - START) % EVERY == 0:
            averaged.update_parameters(model)
        expected = averaged.module if t >= START else model
        with contenders.get("swa").evaluation(optimizer):
            for p, q in zip(model.parameters(), expected.parameters(), strict=True):
                torch.testing.assert_close(p, q, rtol=0, atol=1e-14)


def test_swa_goes_to_a_rate_of_its_own_as_torchs_scheduler_does() -> None:
    p, q = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    steps = {"horizon": HORIZON, "start": START / HORIZON, "anneal": 6 / HORIZON}
    ours = contenders.create("swa", [p], lr=0.1, momentum=0.0, swa_lr=0.02, **steps)
    theirs = torch.optim.SGD([q], 0.1)
    scheduler = SWALR(theirs, swa_lr=0.02, anneal_epochs=6)
    for t in range(1, HORIZON):
        p.grad = q.grad = torch.ones(1)
        ours.step()
        theirs.step()
        if t > START:
            scheduler.step()
        torch.testing.assert_close(p, q)
    assert theirs.param_groups[0]["lr"] == 0.02
    assert ours.param_groups[0]["lr"] == 0.1  # which is the schedule's


def test_groups_may_have_inner_optimizers_of_their_own() -> None:
    params, twins = ([nn.Parameter(torch.ones(2)) for _ in range(2)] for _ in range(2))
    groups = [{"params": params[:1]}, {"params": params[1:], "inner": "adam", "lr": 0.01}]
    wrapped = contenders.create("swa", groups, lr=0.1)
    plain = torch.optim.SGD(twins[:1], 0.1, momentum=0.9), torch.optim.Adam(twins[1:], 0.01)
    for step in range(5):
        for p in (*params, *twins):
            p.grad = torch.tensor([1.0, step])
        for optimizer in (wrapped, *plain):
            optimizer.step()
    assert all(map(torch.equal, params, twins))


def test_inner_optimizers_see_a_changed_rate() -> None:
    p, q = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    wrapped = contenders.create("lookahead", [p], k=100)
    plain = torch.optim.SGD([q], 0.1, momentum=0.9)
    schedulers = [torch.optim.lr_scheduler.StepLR(o, 2, 0.1) for o in (wrapped, plain)]
    for _ in range(6):
        p.grad = q.grad = torch.ones(3)
        wrapped.step()
        plain.step()
        for scheduler in schedulers:
            scheduler.step()
    assert torch.equal(p, q)
