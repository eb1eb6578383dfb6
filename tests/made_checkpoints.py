"""Small trained optimizers and their state dicts."""

from __future__ import annotations

import copy
from typing import Any

from made_parameters import Build, Train
from torch import nn

from hvadam import HVAdam

TENSORS = ("exp_avg", "hidden", "exp_avg_var")

StateDict = dict[str, Any]


def two_groups(model: nn.Module) -> list[dict[str, Any]]:
    """Return the first parameter and the others as two groups, the second with weight decay."""
    first, *others = model.parameters()
    return [{"params": [first]}, {"params": others, "weight_decay": 0.1}]


def trained(build: Build, train: Train, **options: Any) -> tuple[nn.Module, HVAdam]:
    """Return a model and its optimizer after five steps."""
    model = build()
    optimizer = HVAdam(two_groups(model), **options)
    train(model, optimizer, range(5))
    return model, optimizer


def saved(build: Build, train: Train, **options: Any) -> StateDict:
    """Return a copy of the state dict of an optimizer after five steps."""
    return copy.deepcopy(trained(build, train, **options)[1].state_dict())
