"""Going on from AdamW."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

import hvadam


def trained(optimizer_class: Any = torch.optim.AdamW) -> tuple[nn.Module, Any, Any]:
    """A model that an AdamW trained for a while, the AdamW, and the next gradients' loss."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    adamw = optimizer_class(model.parameters(), lr=1e-3)
    x = torch.randn(64, 4)
    y = x.prod(1, keepdim=True)

    def backward() -> None:
        model.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()

    for _ in range(100):
        backward()
        adamw.step()
    backward()
    return model, adamw, backward


def moved(model: nn.Module, optimizer: Any) -> float:
    """How far one step goes."""
    before = [p.detach().clone() for p in model.parameters()]
    optimizer.step()
    steps = [p.detach() - old for p, old in zip(model.parameters(), before, strict=True)]
    return torch.cat([x.reshape(-1) for x in steps]).norm().item()


@pytest.mark.parametrize(
    "options",
    [{}, {"state_dtype": "bfloat16"}, {"state_dtype": "int8"}, {"preconditioner": "adam"}],
    ids=str,
)
@pytest.mark.parametrize("adam", [torch.optim.Adam, torch.optim.AdamW])
def test_the_first_step_is_about_as_long_as_adams(adam: Any, options: dict[str, Any]) -> None:
    model, adamw, _ = trained(adam)
    twin, twin_adamw, _ = trained(adam)
    theirs = moved(twin, twin_adamw)
    optimizer = hvadam.HVAdam(model.parameters(), lr=1e-3, **options)
    hvadam.warm_start(optimizer, adamw)
    assert theirs / 2 < moved(model, optimizer) < theirs * 2


def test_averages_are_carried_over_and_the_hidden_vector_is_not_started() -> None:
    model, adamw, _ = trained()
    optimizer = hvadam.HVAdam(model.parameters(), lr=1e-3, betas=(0.8, 0.99), gamma=0.25)
    hvadam.warm_start(optimizer, copy.deepcopy(adamw.state_dict()))
    for p in model.parameters():
        ours, theirs = optimizer.state[p], adamw.state[p]
        assert torch.equal(ours["exp_avg"], theirs["exp_avg"])
        torch.testing.assert_close(
            ours["exp_avg_var"], theirs["exp_avg_sq"] / (0.8**2 + 0.25), rtol=1e-6, atol=0
        )
        assert ours["step"] == theirs["step"] == 100
        assert not ours["hidden"].any()
    found = optimizer.diagnostics()["global"]
    assert (found["step"], found["steps_since_restart"]) == (100, -1)


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    model, adamw, _ = trained()
    state = adamw.state_dict()
    for bad, match in (
        ({}, "adamw must be an optimizer or its state_dict"),
        ({**state, "param_groups": []}, "must hold as many parameters, got \\[4\\] here"),
        (torch.optim.SGD(model.parameters()).state_dict() | {"state": {0: {"x": 1}}}, "as Adam's"),
        (
            {**state, "state": {**state["state"], 3: state["state"][0]}},
            r"exp_avg of shape \(8, 4\) does not fit a parameter of shape \(1,\)",
        ),
    ):
        optimizer = hvadam.HVAdam(model.parameters())
        with pytest.raises(ValueError, match=match):
            hvadam.warm_start(optimizer, bad)
        assert not optimizer.state
    optimizer = hvadam.HVAdam(model.parameters())
    optimizer.step()
    with pytest.raises(ValueError, match="has stepped already"):
        hvadam.warm_start(optimizer, adamw)


def test_arguments_the_wrong_way_round_or_of_another_kind_are_named() -> None:
    model, adamw, _ = trained()
    optimizer = hvadam.HVAdam(model.parameters())
    given: Any
    for given, message in (
        ((adamw, optimizer), "got AdamW and HVAdam; they are the wrong way round"),
        ((adamw, optimizer.state_dict()), "got AdamW and dict; they are the wrong way round"),
        ((adamw, adamw), r"write warm_start\(optimizer, adamw\), .* got AdamW and AdamW\."),
        ((optimizer, [1]), "adamw must be an optimizer or its state_dict.*, got list"),
    ):
        with pytest.raises(TypeError, match=f"^hvadam.warm_start: .*{message}"):
            hvadam.warm_start(*given)
    with pytest.raises(ValueError, match=r"state of an HVAdam; .* optimizer\.load_state_dict"):
        hvadam.warm_start(optimizer, hvadam.HVAdam(model.parameters()))
    assert not optimizer.state


def test_an_adamw_that_never_stepped_says_so() -> None:
    model = nn.Linear(2, 1)
    fresh = torch.optim.AdamW(model.parameters())
    for given in (fresh, fresh.state_dict()):
        with pytest.raises(ValueError, match="has no state, because it has not stepped"):
            hvadam.warm_start(hvadam.HVAdam(model.parameters()), given)
