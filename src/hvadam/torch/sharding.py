"""One hidden vector over many processes: who holds which part of it, and the sums of a step.

Every global quantity of a step follows from sums over all elements, so ranks that hold parts take
one small all-reduce a step. Each element must be counted once, on one rank:

- a DTensor by the ranks whose coordinate is 0 on every dimension of its mesh that replicates it,
  and only if its mesh holds the lowest rank of all meshes that the optimizer sees: the others hold
  copies;
- a plain tensor beside DTensors, of which every rank has a copy, by that lowest rank;
- a plain tensor under ``shard_group`` by the one rank that has it.

The sum runs over the union of the meshes, so every replica gets the same bits and takes the same
decisions.
"""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from hvadam.torch import groups, storage, tracing
from hvadam.torch.gradients import squared_norm
from hvadam.torch.kernels import Columns

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class Layout:
    """Which parts of some parameters this rank counts, and the ranks to add up over.

    Args:
        params: All that one sum spans.
        shard_group: The ranks that hold disjoint pieces, if the user named them.
    """

    def __init__(self, params: Sequence[Tensor], shard_group: ProcessGroup | None) -> None:
        self.params = list(params)
        ranks = sorted({rank for p in self.params for rank in _mesh_ranks(p)})
        self._group = _group_of(ranks, self.params, shard_group)
        lowest = ranks[0] if ranks else dist.get_rank()
        self._counted = {p: _counts(p, lowest) for p in self.params}

    def fits(self, params: Sequence[Tensor]) -> bool:
        """Return whether the optimizer still holds the parameters that this was made for."""
        return len(params) == len(self.params) and all(map(operator.is_, params, self.params))

    def counts(self, p: Tensor) -> bool:
        """Return whether this rank's part of a parameter goes into the sums."""
        return self._counted[p]

    def sum(self, values: Tensor) -> None:
        """Add values up over the ranks, in place."""
        devices = {device.type for device in self._group._device_types}
        if values.device.type in devices:
            dist.all_reduce(values, group=self._group)
        else:  # parameters that are offloaded to a device that the backend does not serve
            there = values.to(devices.pop())
            dist.all_reduce(there, group=self._group)
            values.copy_(there)


class Sharding(Layout):
    """A layout of an optimizer's parameters on the ranks, agreed by all of them.

    Building one is collective: every rank compares its layout with the others'.

    Args:
        param_groups: Of the optimizer.
        shard_group: The ranks that hold disjoint pieces, if the user named them.
    """

    def __init__(
        self, param_groups: Sequence[dict[str, Any]], shard_group: ProcessGroup | None
    ) -> None:
        super().__init__(_all_params(param_groups), shard_group)
        # Of each hidden vector, the coarsest rounding of the state it spans on any rank.
        self.rounding = _agree_on_layout(param_groups, self._group, shard_group is not None)

    def agree_on_gradients(self, found_inf: Tensor | None) -> tuple[Tensor, bool]:
        """Return the gradients' squared norm, and whether any rank's scaler found an inf."""
        grads = [local_gradient(p) for p in self.params if p.grad is not None and self._counted[p]]
        home = self.params[0].device if self.params else torch.device("cpu")
        sums = torch.zeros(2, dtype=torch.float64, device=home)
        if grads:
            sums[0] = squared_norm(grads)
        if found_inf is not None:
            sums[1] += found_inf.to(home)
        self.sum(sums)
        return sums[0], bool(sums[1] != 0)

    def sum_dots(self, dots: Tensor, active: list[bool]) -> tuple[Tensor, Tensor]:
        """Return the dots of all ranks, and which hidden vectors saw a gradient on any.

        Args:
            dots: This rank's, one row per hidden vector.
            active: Which of them saw a gradient here.
        """
        seen = dots.new_tensor([[float(x)] for x in active])
        sums = torch.cat([dots, seen], 1)
        self.sum(sums)
        return sums[:, :4], sums[:, 4] > 0


def find(
    param_groups: Sequence[dict[str, Any]],
    shard_group: ProcessGroup | None,
    known: Sharding | None,
) -> Sharding | None:
    """Return how an optimizer's parameters are sharded now, or None where nothing is.

    Args:
        param_groups: Of the optimizer.
        shard_group: The user's.
        known: What was found at the last step; kept while it fits.
    """
    if not is_sharded(param_groups, shard_group):
        return None
    if torch.compiler.is_compiling():
        tracing.refuse(
            "torch.compile is for parameters that are not sharded; leave step() uncompiled, the "
            "kernels are compiled already."
        )
    if known is not None and known.fits(_all_params(param_groups)):
        return known
    return Sharding(param_groups, shard_group)


def is_sharded(param_groups: Sequence[dict[str, Any]], shard_group: ProcessGroup | None) -> bool:
    """Return whether some of what the hidden vectors span may lie on other ranks."""
    tensors = map(operator.itemgetter("params"), param_groups)
    return shard_group is not None or any(map(has_dtensors, tensors))


def scalers_agree(param_groups: Sequence[dict[str, Any]], shard_group: ProcessGroup | None) -> bool:
    """Return whether the GradScalers of all ranks skip the same steps, as a sharded step needs it.

    Torch tells each what the others found along the dimensions on which the first gradient is
    sharded; those are all that there are if the others are laid out as it is.
    """
    if not is_sharded(param_groups, shard_group):
        return True
    layouts = {
        (p.device_mesh, tuple(x.is_replicate() for x in p.placements)) if is_dtensor(p) else None  # pyright: ignore[reportAttributeAccessIssue]
        for p in _all_params(param_groups)
    }
    return shard_group is None and len(layouts) == 1


def has_dtensors(tensors: Sequence[Tensor]) -> bool:
    """Return whether any of the tensors is one rank's view of a sharded or replicated one."""
    kind = _dtensor()
    return kind is not None and any(issubclass(found, kind) for found in {*map(type, tensors)})


def local(tensors: Columns) -> Columns:
    """Return the parts that this rank holds: plain tensors that share memory with the sharded."""
    grads = [local_gradient(p, g) for p, g in zip(tensors.theta, tensors.g, strict=bool(tensors.g))]
    theta, m, v, s = (
        [local_part(x) for x in column]
        for column in (tensors.theta, tensors.m, tensors.v, tensors.s)
    )
    return tensors._replace(theta=theta, g=grads, m=m, v=v, s=s)


def local_part(x: Tensor) -> Tensor:
    """Return this rank's part of a tensor."""
    if not is_dtensor(x):
        return x
    part: Any = x.to_local()  # pyright: ignore[reportAttributeAccessIssue]
    return part.wait() if hasattr(part, "wait") else part


def local_gradient(p: Tensor, grad: Tensor | None = None) -> Tensor:
    """Return this rank's part of a gradient, laid out as its parameter is."""
    g: Any = p.grad if grad is None else grad
    if is_dtensor(p) and g.placements != p.placements:  # pyright: ignore[reportAttributeAccessIssue]
        g = g.redistribute(placements=p.placements)  # pyright: ignore[reportAttributeAccessIssue]
    return local_part(g)


def shard_number(p: Tensor) -> int:
    """Return which part of a parameter this rank holds, the same for copies of a part."""
    if not is_dtensor(p):
        return 0
    mesh: Any = p.device_mesh  # pyright: ignore[reportAttributeAccessIssue]
    number = 0
    for size, at, placement in zip(mesh.shape, mesh.get_coordinate() or (), _placements(p)):  # noqa: B905
        if not placement.is_replicate():
            number = number * size + at
    return number


def is_dtensor(x: Any) -> bool:
    """Return whether a tensor is one rank's view of a sharded or replicated one."""
    kind = _dtensor()
    return kind is not None and isinstance(x, kind)


class ProcessGroupReference:
    """A process group as an optimizer holds it: shared by copies, left out of pickles."""

    def __init__(self, group: ProcessGroup | None, lost: bool = False) -> None:
        self.group = group
        self.lost = lost  # there was one when this was pickled

    def __deepcopy__(self, memo: dict[int, Any]) -> ProcessGroupReference:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.group is not None:
            warnings.warn(
                "HVAdam: a process group cannot be pickled, so the pickled optimizer is without "
                "its shard_group; set optimizer.shard_group on the copy before it steps.",
                stacklevel=2,
            )
        return ProcessGroupReference, (None, self.lost or self.group is not None)


def check_shard_group(group: Any) -> None:
    """Refuse what is not a process group that this rank is in."""
    if group is None:
        return
    if not dist.is_available() or not isinstance(group, dist.ProcessGroup):
        hint = (
            "; this rank is not a member of it"
            if group is dist.GroupMember.NON_GROUP_MEMBER
            else ""
        )
        raise TypeError(
            "HVAdam: shard_group must be a torch.distributed process group that this rank is in, "
            f"or None, got {group!r}{hint}."
        )


def _dtensor() -> Any:
    """Return the class DTensor; None if nobody has loaded it, for then there can be none."""
    module = sys.modules.get("torch.distributed.tensor")
    return None if module is None else module.DTensor


def _all_params(param_groups: Sequence[dict[str, Any]]) -> list[Tensor]:
    """Return the parameters of all groups."""
    return [p for group in param_groups for p in group["params"]]


def _placements(p: Any) -> tuple[Any, ...]:
    """Return how a DTensor is placed on each dimension of its mesh."""
    return p.placements


def _mesh_ranks(p: Any) -> list[int]:
    """Return the ranks of a parameter's mesh; none for a plain tensor."""
    return p.device_mesh.mesh.flatten().tolist() if is_dtensor(p) else []


def _counts(p: Any, lowest: int) -> bool:
    """Return whether this rank's part of a parameter goes into the sums."""
    if not is_dtensor(p):
        return dist.get_rank() == lowest
    at = p.device_mesh.get_coordinate()
    if at is None or lowest not in _mesh_ranks(p):
        return False
    return all(
        i == 0 for i, placement in zip(at, p.placements, strict=True) if placement.is_replicate()
    )


def _group_of(
    ranks: list[int], params: Sequence[Tensor], shard_group: ProcessGroup | None
) -> ProcessGroup:
    """Return the process group to add up over."""
    if shard_group is not None:
        return shard_group
    if ranks == list(range(dist.get_world_size())):
        world: Any = dist.group.WORLD
        return world
    for p in params:
        if is_dtensor(p):
            mesh: Any = p.device_mesh  # pyright: ignore[reportAttributeAccessIssue]
            if mesh.ndim == 1 and sorted(_mesh_ranks(p)) == ranks:
                return mesh.get_group()
    made: Any = dist.new_group(ranks, use_local_synchronization=True)
    return made


def _agree_on_layout(
    param_groups: Sequence[dict[str, Any]], group: ProcessGroup, own_pieces: bool
) -> list[float]:
    """Compare layouts, and take the coarsest rounding of each scope.

    Raises:
        ValueError: on every rank with the same message, if two of them disagree.
    """
    mine = {
        "refused": _refusal(param_groups, group),
        "layout": _layout(param_groups, own_pieces),
        "rounding": _roundings(param_groups),
    }
    theirs: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(theirs, mine, group=group)
    ranks = dist.get_process_group_ranks(group)
    first = theirs[0]["layout"]
    for rank, other in zip(ranks, theirs, strict=True):
        if other["refused"]:
            raise ValueError(f"HVAdam: {other['refused']} (rank {rank}).")
        difference = _difference(first, other["layout"])
        if difference:
            raise ValueError(
                f"HVAdam: ranks {ranks[0]} and {rank} disagree on what they optimize: {difference}."
                " Build the same model and param groups and load the same checkpoint on every rank."
            )
    return [max(column) for column in zip(*(other["rounding"] for other in theirs), strict=True)]


def _refusal(param_groups: Sequence[dict[str, Any]], group: ProcessGroup) -> str | None:
    """Return what is wrong with this rank's parameters: told to all, who would wait for it else."""
    members = {*dist.get_process_group_ranks(group)}
    for p in _all_params(param_groups):
        if is_dtensor(p) and any(placement.is_partial() for placement in _placements(p)):
            return f"a parameter must not be a Partial DTensor, got {_placements(p)}"
        outside = sorted({*_mesh_ranks(p)} - members)
        if outside:
            return (
                f"shard_group must hold all ranks that parameters lie on; {outside} are in the "
                "mesh of a parameter but not in it"
            )
    return None


def _layout(param_groups: Sequence[dict[str, Any]], own_pieces: bool) -> list[tuple[str, str]]:
    """Return (what, value) of all that ranks must agree on; pieces of their own they need not."""
    first = param_groups[0]
    layout = [(name, repr(first[name])) for name in groups.OPTIMIZER_WIDE if name != "kernel"]
    layout.append(("the number of param groups", str(len(param_groups))))
    for i, group in enumerate(param_groups):
        layout += [(f"{name} of group {i}", repr(x)) for name, x in groups.policy_options(group)]
        if "scalars" in group:  # a checkpoint may have been loaded by one rank and not by another
            layout.append((f"the hidden vector of group {i}", repr(group["scalars"].tolist())))
        if not own_pieces or group["scope"] == "tensor":
            layout.append((f"the number of parameters in group {i}", str(len(group["params"]))))
        for j, p in enumerate(() if own_pieces else group["params"]):
            where = f", {_placements(p)} on {p.device_mesh.shape}" if is_dtensor(p) else ""
            layout.append((f"parameter {j} of group {i}", f"{tuple(p.shape)} of {p.dtype}{where}"))
    return layout


def _difference(a: list[tuple[str, str]], b: list[tuple[str, str]]) -> str | None:
    """Return where two layouts differ, in words, or None."""
    for (what, ours), (name, theirs) in zip(a, b, strict=False):
        if what != name or ours != theirs:
            return (
                f"{what} is {ours} and {name} is {theirs}"
                if what != name
                else (f"{what} is {ours} and {theirs}")
            )
    return None


def _roundings(param_groups: Sequence[dict[str, Any]]) -> list[float]:
    """Return the coarsest rounding of each scope's state on this rank."""
    found: list[float] = []
    for group in param_groups:
        own = [
            storage.rounding(storage.dtypes_of(p, group["state_dtype"])[0]) for p in group["params"]
        ]
        if group["scope"] == "tensor":
            found += own
        else:
            found.append(max(own, default=0.0))
    return found if param_groups[0]["scope"] != "global" else [max(found)]
