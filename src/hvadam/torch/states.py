"""What an optimizer keeps per parameter: made on first sight, found again, forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any, TypeAlias

import torch
from torch import Tensor

from hvadam.core.scalars import FIELDS
from hvadam.torch import devices, groups, sharding, storage

States: TypeAlias = Mapping[Tensor, dict[str, Any]]


def initial(p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a parameter that has not stepped.

    Raises:
        TypeError: The group's ``state_dtype`` is not for parameters like this one.
    """
    if group["state_dtype"] == "int8" and sharding.is_dtensor(p):
        raise TypeError(
            'HVAdam: state_dtype="int8" is for parameters that are whole on each rank: its '
            "scales belong to blocks of memory, which a checkpoint for other shards would have "
            'to cut anew. Use state_dtype="bfloat16".'
        )
    state: dict[str, Any] = {
        "step": torch.zeros((), dtype=torch.float32, device=p.device),
        **storage.empty_state(p, group["state_dtype"]),
    }
    if group["scope"] == "tensor":
        state["scalars"] = groups.initial_scalars().to(devices.home(p.device))
    return state


class Order:
    """The states in the order they lie in at the beginning of a step.

    To look up a tensor is a call of Python's, which for thousands of small ones adds up, and to
    walk to a group's place among the states, group by group, takes the square of their number.

    Args:
        states: Of all parameters.
    """

    def __init__(self, states: States) -> None:
        self._states = states
        self._params, self._values = list(states), list(states.values())
        self.is_checked = False  # for parameters that are in no group

    def find(self, params: list[Tensor], first: int) -> list[dict[str, Any]]:
        """Return the state of each parameter, without a look-up where it lies as in the groups.

        Args:
            params: Some of a group's parameters.
            first: The place of the group's first parameter among those of all groups.
        """
        here = slice(first, first + len(params))
        known = self._params[here]
        if len(known) == len(params) and all(map(is_, known, params)):
            return self._values[here]
        return [self._states[p] for p in params]


def forget_empty_step(states: States, param_groups: Sequence[dict[str, Any]]) -> None:
    """Undo a first step at lr 0 that brought no gradient but zeros.

    ``torch.distributed.checkpoint`` and others take one to have the state made. It has moved no
    parameter and started no hidden vector; but for this it would count.
    """
    if any(float(group["lr"]) != 0 for group in param_groups):
        return
    started = FIELDS.index("steps_since_restart")
    every = [s["scalars"] for s in (*param_groups, *states.values()) if "scalars" in s]
    if any(bool(scalars[started] >= 0) for scalars in every):
        return
    for group in param_groups:
        if "scalars" in group:
            group["scalars"].copy_(groups.initial_scalars())
        for p in group["params"]:
            if p in states:
                states[p].update(initial(p, group))
