"""One step over the table of rows: first pass, scalars, second pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from hvadam.torch import gradients, kernels, policy, self_check
from hvadam.torch.kernels import Batch
from hvadam.torch.rows import Section, Table


class Step:
    """The rows of a table in the hands of the kernels that move them.

    Args:
        table: What the step moves.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        # Of each kernel, apart by whether their tensors go into the sums.
        self._batches: dict[tuple[str, bool], list[Batch[Any]]] = {}
        for section in table.sections:
            for name, batch in _assigned(section):
                self._batches.setdefault((name, section.counted), []).append(batch)
        self._measures = self._can_measure()

    def scale_gradients(
        self, grad_scale: Tensor | None, max_grad_norm: float | None, squared_norm: Tensor | None
    ) -> None:
        """Fold unscaling and clipping into the factor that kernels put on gradients.

        Args:
            grad_scale: Divide the gradients by this first.
            max_grad_norm: Clip them to this norm.
            squared_norm: Of all gradients as they are, if it is known already.
        """
        if grad_scale is None and max_grad_norm is None:
            return
        if max_grad_norm is not None and squared_norm is None:
            squared_norm = self._new_zeros()
            for (name, _), batches in self._batches.items():
                kernels.KERNELS[name].norm(batches, squared_norm)
        factor = gradients.scaling(grad_scale, max_grad_norm, squared_norm)
        for key, batches in self._batches.items():
            self._batches[key] = kernels.scaled(batches, factor)

    def first_pass(self) -> Tensor:
        """Update m and s, and return the dots of each hidden vector: (vectors, 4), float64."""
        count = len(self._table.vectors.scalars)
        dots = self._new_zeros(count, 4)
        if self._measures:
            for name, batches in self._portable():
                kernels.PORTABLE[name].accumulate(batches, dots, wide=False)
            return dots
        copies = dots if self._table.sharded is None else self._new_zeros(count, 4)
        for (name, counted), batches in self._batches.items():
            kernels.KERNELS[name].accumulate(batches, dots if counted else copies)
        return dots

    def advance_scalars(self, dots: Tensor) -> tuple[Tensor, Tensor]:
        """Advance the scalars of each hidden vector, and return its mix and its gain."""
        vectors = self._table.vectors
        active: Any = True  # without a gradient it would not be in the table
        if self._table.sharded is not None:
            dots, active = self._table.sharded.sum_dots(dots, self._table.active())
        if not self._measures or policy.feet_are_clear(dots):
            return policy.advance(vectors, dots, active)
        mix, feet = policy.first_mix(vectors, dots), self._new_zeros(len(dots))
        for name, batches in self._portable():
            kernels.PORTABLE[name].measure(batches, mix, feet)
        return policy.advance(vectors, dots, foot=feet)

    def second_pass(self, mix: Tensor, gain: Tensor) -> None:
        """Move v and the parameters."""
        for (name, _), batches in self._batches.items():
            kernels.KERNELS[name].apply(batches, mix, gain)
        if self._table.sharded is not None:  # the kernels wrote to the local parts
            increment_version([p for _, params in self._table.moved for p in params])

    def _can_measure(self) -> bool:
        """Return whether v can be measured as it is about to be moved, which spares float64.

        It may take a second sum: where that would be a second all-reduce, or one more wait for a
        device, dots in float64 cost less, and compiled they cost nothing.
        """
        on_cpu = self._table.vectors.scalars[0].device.type == "cpu"
        return (
            on_cpu
            and self._table.sharded is None
            and not torch.compiler.is_compiling()
            and all(name in kernels.PORTABLE for name, _ in self._batches)
        )

    def _portable(self) -> Iterator[tuple[str, list[Batch[Any]]]]:
        """Yield the batches of each kernel, where all of them are portable."""
        for (name, _), batches in self._batches.items():
            yield name, batches

    def _new_zeros(self, *shape: int) -> Tensor:
        """Return float64 zeros where the scalars lie."""
        home = self._table.vectors.scalars[0].device
        return torch.zeros(shape, dtype=torch.float64, device=home)


def _assigned(section: Section) -> Iterator[tuple[str, Batch[Any]]]:
    """Return the batches of a section, each with its kernel."""
    return kernels.assign(
        *(section.kernel, section.options, section.tensors, section.scopes),
        self_check.trusts_triton,
    )
