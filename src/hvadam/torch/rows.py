"""The table of what one step moves, built once before anything moves.

A row is a parameter with its gradient, its state and its hidden vector, as they lie on this rank.
Rows come in sections: those of one param group share its options.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from torch import Tensor

from hvadam.torch import groups, sharding, states, storage
from hvadam.torch.kernels import Columns, Options
from hvadam.torch.policy import HiddenVectors
from hvadam.torch.sharding import Sharding
from hvadam.torch.states import States


class Section(NamedTuple):
    """Rows of one param group that take part in a step alike."""

    kernel: str
    options: Options
    tensors: Columns
    scopes: Sequence[int]  # the hidden vector of each row
    counted: bool = True  # whether they go into the sums: copies of what another rank has do not


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
        self.sections: list[Section] = []
        self.moved: list[tuple[Options, list[Tensor]]] = []  # parameters with a gradient, whole
        self.sharded = sharded
        self._param_groups = param_groups
        self._states = state

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
        tensors = self._with_extras(group, place, columns)
        whole = Section(group["kernel"], options, tensors, scopes)
        self.sections += [whole] if self.sharded is None else self._parts(whole, self.sharded)

    @cached_property
    def order(self) -> states.Order:
        """Return the states as they lie."""
        return states.Order(self._states)

    def active(self) -> list[bool]:
        """Return, for each hidden vector, whether it has a row here."""
        present = {scope for section in self.sections for scope in section.scopes}
        return [scope in present for scope in range(len(self.vectors.scalars))]

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

    def _parts(self, whole: Section, sharded: Sharding) -> list[Section]:
        """Return a section as it lies on this rank, what goes into the sums apart from copies."""
        counts = [sharded.counts(p) for p in whole.tensors.theta]
        tensors = sharding.local(whole.tensors)
        parts: list[Section] = []
        for counted in (True, False):
            rows = [i for i, x in enumerate(counts) if x == counted]
            if rows:
                scopes = [whole.scopes[i] for i in rows]
                own = tensors.take(rows)
                parts.append(whole._replace(tensors=own, scopes=scopes, counted=counted))
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
        state_dtype = group["state_dtype"]
        if not columns.theta or state_dtype == "float32":
            return columns
        extras: dict[str, Any] = {}
        own = self.order.find(columns.theta, place)
        if state_dtype == "int8":
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
        return [i + self._count * shard for i, shard in zip(index, shards, strict=True)]

    @cached_property
    def _count(self) -> int:
        """Return how many parameters there are."""
        return sum(len(group["params"]) for group in self._param_groups)
