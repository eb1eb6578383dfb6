"""What an optimizer keeps per parameter: made on first sight, found, handed to the kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from operator import is_
from typing import Any, TypeAlias

import torch
from torch import Tensor

from hvadam.torch import groups, sharding
from hvadam.torch.kernels import storage
from hvadam.torch.kernels.batch import Columns

States: TypeAlias = Mapping[Tensor, dict[str, Any]]


def initial(p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
    """The state of a parameter that has not stepped.

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
    if group["hidden_step"] == "late":
        state["pending"] = torch.zeros(2, dtype=torch.float64, device=p.device)
    if group["scope"] == "tensor":
        state["scalars"] = groups.initial_scalars().to(p.device)
    return state


def find(
    states: States,
    param_groups: Sequence[dict[str, Any]],
    group: dict[str, Any],
    params: list[Tensor],
) -> list[dict[str, Any]]:
    """The state of each, without looking them up where it lies in the order of the groups.

    To look up a tensor is a call of Python's, which for thousands of small ones adds up.

    Args:
        states: Of all parameters.
        param_groups: All groups.
        group: One of them.
        params: Some of its parameters.
    """
    first = 0
    for earlier in param_groups:
        if earlier is group:
            break
        first += len(earlier["params"])
    end = first + len(params)
    in_order = all(map(is_, islice(states, first, end), params))
    if in_order and len(states) >= end:
        return list(islice(states.values(), first, end))
    return [states[p] for p in params]


def with_extras(
    columns: Columns, states: States, param_groups: Sequence[dict[str, Any]]
) -> Columns:
    """The columns that only low-bit state and the late step have."""
    state_dtype = param_groups[0]["state_dtype"]
    late = param_groups[0]["hidden_step"] == "late"
    if state_dtype == "float32" and not late:
        return columns
    extras: dict[str, Any] = {}
    own = [states[p] for p in columns.theta]
    if state_dtype == "int8":
        for short, key in (("m", "exp_avg"), ("v", "hidden"), ("s", "exp_avg_var")):
            extras[f"{short}_scales"] = [state[storage.SCALES[key]] for state in own]
    if state_dtype != "float32":
        everyone = (p for group in param_groups for p in group["params"])
        index = {p: i for i, p in enumerate(everyone)}
        extras["index"] = [index[p] + len(index) * sharding.shard_number(p) for p in columns.theta]
    if late:
        extras["pending"] = [state["pending"] for state in own]
    return columns._replace(**extras)
