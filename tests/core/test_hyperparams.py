"""Ranges and messages of the hyper-parameters, and the ablation presets."""

from __future__ import annotations

from typing import Any

import pytest

from hvadam import ablation
from hvadam.core.hyperparams import Hyperparams

BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"lr": -1.0}, ValueError, "lr must be >= 0 and finite, got -1."),
    ({"lr": float("inf")}, ValueError, "lr must be >= 0 and finite, got inf."),
    ({"lr": float("nan")}, ValueError, "lr must be a number, got nan."),
    ({"lr": "fast"}, TypeError, "lr must be a number, got 'fast'."),
    ({"lr": True}, TypeError, "lr must be a number, got True."),
    ({"betas": (1.2, 0.9)}, ValueError, "betas[0] must be in [0, 1), got 1.2."),
    ({"betas": (0.9, -0.1)}, ValueError, "betas[1] must be in [0, 1), got -0.1."),
    ({"betas": 0.9}, TypeError, "betas must be a pair of numbers, got 0.9."),
    ({"eps": 0.0}, ValueError, "eps must be finite and at least 2**-126"),
    ({"gamma": -0.5}, ValueError, "gamma must be >= 0 and finite, got -0.5."),
    ({"weight_decay": -1}, ValueError, "weight_decay must be >= 0 and finite, got -1."),
    (
        {"weight_decay_mode": "l2"},
        ValueError,
        "weight_decay_mode must be one of 'decoupled', 'coupled', got 'l2'.",
    ),
    ({"hidden_scale": -1}, ValueError, "hidden_scale must be >= 0 and finite, got -1."),
    (
        {"hidden_gain": "cubic"},
        ValueError,
        "hidden_gain must be one of 'exponential', 'linear', got 'cubic'.",
    ),
    ({"restart_threshold": 1.0}, ValueError, "restart_threshold must be in [0, 1), got 1."),
    (
        {"preconditioner": "none"},
        ValueError,
        "preconditioner must be one of 'hidden', 'adam', got 'none'.",
    ),
    ({"scope": "all"}, ValueError, "scope must be one of 'global', 'group', 'tensor', got 'all'."),
    ({"restart_rule": 1}, ValueError, "restart_rule must be one of 'paper', 'authors', got 1."),
    ({"bounds": (1.0, 1.0)}, ValueError, "bounds must be (low, high), low < high, got (1.0, 1.0)."),
    ({"bounds": 1.0}, TypeError, "bounds must be a pair of numbers, got 1.0."),
    ({"maximize": 1}, TypeError, "maximize must be True or False, got 1."),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD, ids=lambda x: str(x)[:40])
def test_names_what_is_out_of_range(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        Hyperparams(**options)
    assert str(caught.value).startswith(f"HVAdam: {message}")


def test_ablation_presets() -> None:
    presets = {level: ablation(level) for level in (0, 1, 2, "full")}
    assert all(
        set(p) == {"preconditioner", "hidden_scale", "restart_threshold"} for p in presets.values()
    )
    assert Hyperparams(**presets["full"]) == Hyperparams()
    assert presets[0]["hidden_scale"] == 0
    assert presets[1]["preconditioner"] == presets[0]["preconditioner"] == "adam"
    assert presets[2]["restart_threshold"] == 0
    with pytest.raises(ValueError, match=r"level must be 0, 1, 2 or 'full', got 3"):
        ablation(3)
