"""A hidden vector over all parameters needs a step that sees all of them.

Some engines step parameters apart: one optimizer for each, inside backward, or sub-group by
sub-group. HVAdam would then silently be another optimizer, so such steps are refused. With
``scope="tensor"``, a hidden vector for each tensor, they are exact.
"""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import torch
from torch.autograd import _get_sequence_nr  # pyright: ignore[reportAttributeAccessIssue]

if TYPE_CHECKING:
    from hvadam.torch.optimizer import HVAdam
    from hvadam.torch.states import Order

# So many optimizers of one parameter each, all alive and stepping in a row, are no coincidence.
SINGLES = 8


def refuse_parts(optimizer: HVAdam, lost_group: bool) -> None:
    """Refuse a step that cannot see all parameters.

    Args:
        optimizer: About to step.
        lost_group: Whether it came out of a pickle without the shard_group it went in with.
    """
    if lost_group:
        raise RuntimeError(
            "HVAdam: this optimizer had a shard_group when it was pickled, which a pickle cannot "
            "hold; set optimizer.shard_group before it steps, to None if it is alone now."
        )
    groups = optimizer.param_groups
    if groups[0]["scope"] == "tensor":
        return
    if torch._C._current_graph_task_id() >= 0:
        raise RuntimeError(
            "HVAdam: step() was called inside backward, where not all gradients are there yet, but "
            f'scope="{groups[0]["scope"]}" needs them all; step after backward, or use '
            'scope="tensor".'
        )
    if len(groups) == 1 and len(groups[0]["params"]) == 1 and _has_several_elements(groups[0]):
        row = _in_a_row.count(optimizer)
        if row > SINGLES:
            raise RuntimeError(
                f"HVAdam: {row} optimizers of one parameter each step in a row, so none sees the "
                f'hidden vector that scope="{groups[0]["scope"]}" asks for; give all parameters to '
                'one optimizer, or use scope="tensor", which is the same for one parameter.'
            )


def _has_several_elements(group: dict[str, Any]) -> bool:
    """Return whether a group's only parameter has a gradient of more than one element.

    Scalars, such as each agent's temperature in reinforcement learning, are trained by themselves.
    """
    grad = group["params"][0].grad
    return grad is not None and grad.numel() > 1


class _Row:
    """Optimizers that step in a row, with no forward pass between them.

    They share the backward pass that made their gradients. Models that are trained by themselves,
    one after another, have forward passes of their own, each of which autograd numbers.
    """

    def __init__(self) -> None:
        self._optimizers: WeakSet[HVAdam] = WeakSet()
        self._moment: tuple[int, int] | None = None

    def count(self, optimizer: HVAdam) -> int:
        """Return how many there are now, with one that is about to step."""
        moment = (threading.get_ident(), _get_sequence_nr())  # every thread counts for itself
        if moment != self._moment:
            self._optimizers.clear()
            self._moment = moment
        self._optimizers.add(optimizer)
        if len(self._optimizers) > SINGLES:
            # An optimizer that nobody holds any more lives until Python looks for reference cycles.
            gc.collect()
        return len(self._optimizers)


_in_a_row = _Row()


def refuse_swapped(optimizer: HVAdam, order: Order) -> None:
    """Refuse new parameters while the state holds others that no group has any more.

    Args:
        optimizer: Who meets a parameter without a state.
        order: Its states at the beginning of the step, which are looked through once.
    """
    if optimizer.param_groups[0]["scope"] == "tensor" or order.is_checked:
        return
    order.is_checked = True
    present = {p for group in optimizer.param_groups for p in group["params"]}
    gone = sum(1 for p, state in optimizer.state.items() if state and p not in present)
    if gone:
        raise RuntimeError(
            f"HVAdam: the state holds {gone} parameters that are in no param group while new ones "
            "step: who swaps parameters in and out, as ZeRO-3 sub-groups do, never shows all of "
            'them to one step. Use scope="tensor"; or, if they were removed for good, delete '
            "optimizer.state[p] of each."
        )
