"""One step over the table of rows: first pass, scalars, second pass."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd.graph import increment_version

from hvadam.torch import gradients, kernels, policy
from hvadam.torch.rows import Table


def scale_gradients(
    table: Table,
    grad_scale: Tensor | None,
    max_grad_norm: float | None,
    squared_norm: Tensor | None,
) -> None:
    """Fold unscaling and clipping into the factor that kernels put on gradients.

    Args:
        table: What the step moves.
        grad_scale: Divide the gradients by this first.
        max_grad_norm: Clip them to this norm.
        squared_norm: That of all gradients as they are, if it is known already.
    """
    if max_grad_norm is not None and squared_norm is None:
        squared_norm = table.new_zeros()
        for (name, _), batches in table.batches.items():
            kernels.KERNELS[name].norm(batches, squared_norm)
    factor = gradients.scaling(grad_scale, max_grad_norm, squared_norm)
    for key, batches in table.batches.items():
        table.batches[key] = kernels.scaled(batches, factor)


def first_pass(table: Table, narrow: bool) -> Tensor:
    """Update m and s, and return the dots of each hidden vector: (vectors, 4), float64.

    Args:
        table: What the step moves.
        narrow: Whether the dots may be summed in the dtype of the state, because `advance_scalars`
            measures v where they do not tell the cosine.
    """
    dots = table.new_zeros(len(table.vectors.scalars), 4)
    copies = dots if table.sharded is None else dots.clone()
    for (name, counted), batches in table.batches.items():
        if narrow:
            kernels.PORTABLE[name].accumulate(batches, dots, wide=False)
        else:
            kernels.KERNELS[name].accumulate(batches, dots if counted else copies)
    return dots


def advance_scalars(table: Table, dots: Tensor, narrow: bool) -> tuple[Tensor, Tensor]:
    """Advance the scalars of each hidden vector, and return its mix and its gain.

    Args:
        table: What the step moves.
        dots: Those of `first_pass`.
        narrow: Whether they were summed in the dtype of the state.
    """
    vectors = table.vectors
    active: Any = True  # without a gradient it would not be in the table
    if table.sharded is not None:
        dots, active = table.sharded.sum_dots(dots, table.active())
    if not narrow or policy.feet_are_clear(dots):
        return policy.advance(vectors, dots, active)
    mix, feet = policy.first_mix(vectors, dots), table.new_zeros(len(dots))
    for (name, _), batches in table.batches.items():
        kernels.PORTABLE[name].measure(batches, mix, feet)
    return policy.advance(vectors, dots, foot=feet)


def second_pass(table: Table, mix: Tensor, gain: Tensor) -> None:
    """Move v and the parameters."""
    for (name, _), batches in table.batches.items():
        kernels.KERNELS[name].apply(batches, mix, gain)
    if table.sharded is not None:  # the kernels wrote to the local parts
        increment_version([p for _, params in table.moved for p in params])
