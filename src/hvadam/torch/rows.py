"""The table of what one step moves, built once before anything moves.

A row is a parameter with its gradient, its state and its hidden vector, as they lie on this rank.
Rows lie in the batches of the kernels that move them: those of a batch share their options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hvadam.torch import groups, kernels, self_check, sharding, states, storage
from hvadam.torch.kernels import Batch, Columns, Options
from hvadam.torch.policy import HiddenVectors
from hvadam.torch.sharding import Sharding
from hvadam.torch.states import States


class Table:
    """All that one step moves: rows, and the hidden vectors they belong to.

    Args:
        param_groups: Of the optimizer.
        state: Of its parameters.
        sharded: How its parameters lie on the ranks, if they are sharded.
    """

    def __init__(
        self,
        param_groups: Sequence[dict[str, Any]],
        state: States,
        sharded: Sharding | None = None,
    ) -> None:
        self.vectors = HiddenVectors()
        # By kernel, and whether their rows go into the sums: copies of another rank's do not.
        self.batches: dict[tuple[str, bool], list[Batch[Any]]] = {}
        self.moved: list[tuple[Options, list[Tensor]]] = []  # parameters with a gradient, whole
        self.sharded = sharded
        self.order = None if torch.compiler.is_compiling() else states.Order(state)
        self._param_groups = param_groups
        self._states = state
        self._portable = True  # whether all kernels are

    def add(
        self, group: dict[str, Any], place: int, columns: Columns, scalars: list[Tensor]
    ) -> None:
        """Add the rows of a group that have a gradient.

        Args:
            group: The group.
            place: That of its first parameter among those of all groups.
            columns: Its parameters that have one, with gradients and state.
            scalars: Of their hidden vectors: under scope="tensor" one for each, else of the group.
        """
        params = columns.theta
        if self.sharded is not None:  # all there are: another rank may have gradients for them
            scalars = self._every_scalars(group)
        elif not params:
            return
        first = self.vectors.add(group, scalars)
        scopes = self._scopes(group, params, first)
        self._note_rounding(columns, scopes, first)
        options = Options.of(group)
        self.moved.append((options, params))
        if params and group["state_dtype"] != "float32":
            columns = self._with_extras(group, place, columns)
        parts = [(True, columns, scopes)]
        if self.sharded is not None:
            parts = self._local_parts(self.sharded, columns, scopes)
        for counted, tensors, own in parts:
            assigned = kernels.assign(
                group["kernel"], options, tensors, own, self_check.trusts_triton
            )
            for name, batch in assigned:
                self.batches.setdefault((name, counted), []).append(batch)
                self._portable &= name in kernels.PORTABLE

    def active(self) -> list[bool]:
        """Return, for each hidden vector, whether it has a row here."""
        batches = (batch for own in self.batches.values() for batch in own)
        present = {scope for batch in batches for scope in batch.scopes}
        return [scope in present for scope in range(len(self.vectors.scalars))]

    def can_measure(self) -> bool:
        """Return whether v can be measured as it is about to be moved, which spares float64.

        It may take a second sum: where that would be a second all-reduce, or one more wait for a
        device, dots in float64 cost less, and compiled they cost nothing.
        """
        on_cpu = self.vectors.scalars[0].device.type == "cpu"
        apart = self.sharded is None and not torch.compiler.is_compiling()
        return on_cpu and apart and self._portable

    def new_zeros(self, *shape: int) -> Tensor:
        """Return float64 zeros where the scalars lie."""
        home = self.vectors.scalars[0].device
        return torch.zeros(shape, dtype=torch.float64, device=home)

    def _every_scalars(self, group: dict[str, Any]) -> list[Tensor]:
        """Return the scalars of all hidden vectors of a group.

        Under scope="tensor" a parameter without a state has fresh ones, which nobody keeps.
        """
        if group["scope"] != "tensor":
            return [group["scalars"]]
        own = map(self._states.get, group["params"])
        return [state["scalars"] if state else groups.initial_scalars() for state in own]

    def _scopes(self, group: dict[str, Any], params: list[Tensor], first: int) -> Sequence[int]:
        """Return the hidden vector of each row, given the first one of the group."""
        if group["scope"] != "tensor":
            return [first] * len(params)
        if self.sharded is not None:
            return groups.places(group, params, first)
        return range(first, first + len(params))

    def _local_parts(
        self, sharded: Sharding, columns: Columns, scopes: Sequence[int]
    ) -> list[tuple[bool, Columns, Sequence[int]]]:
        """Return rows as they lie on this rank, those that go into the sums apart from copies."""
        counts = [sharded.counts(p) for p in columns.theta]
        tensors = sharding.local(columns)
        parts: list[tuple[bool, Columns, Sequence[int]]] = []
        for counted in (True, False):
            rows = [i for i, x in enumerate(counts) if x == counted]
            if rows:
                parts.append((counted, tensors.take(rows), [scopes[i] for i in rows]))
        return parts

    def _note_rounding(self, columns: Columns, scopes: Sequence[int], first: int) -> None:
        """Note for each hidden vector of these rows the coarsest rounding of its state."""
        rounding = self.vectors.rounding
        if self.sharded is not None:  # as all ranks have agreed
            rounding[first:] = self.sharded.rounding[first : len(rounding)]
            return
        dtypes = {m.dtype for m in columns.m}
        if first == scopes[-1]:
            rounding[first] = max(rounding[first], *map(storage.rounding, dtypes))
        else:
            known = {dtype: storage.rounding(dtype) for dtype in dtypes}
            rounding[first:] = [known[m.dtype] for m in columns.m]

    def _with_extras(self, group: dict[str, Any], place: int, columns: Columns) -> Columns:
        """Return the columns with those that only low-bit state has."""
        extras: dict[str, Any] = {}
        assert self.order is not None  # low-bit state is not for compiled steps
        own = self.order.find(columns.theta, place)
        if group["state_dtype"] == "int8":
            for short, key in (("m", "exp_avg"), ("v", "hidden"), ("s", "exp_avg_var")):
                extras[f"{short}_scales"] = [state[storage.SCALES[key]] for state in own]
        extras["index"] = self._index(group, place, columns.theta)
        return columns._replace(**extras)

    def _index(self, group: dict[str, Any], place: int, params: list[Tensor]) -> Sequence[int]:
        """Return the position of each parameter among all, apart for each part of a sharded one."""
        index = groups.places(group, params, place)
        if not sharding.has_dtensors(params):
            return index
        shards = map(sharding.shard_number, params)
        count = sum(len(group["params"]) for group in self._param_groups)
        return [i + count * shard for i, shard in zip(index, shards, strict=True)]
