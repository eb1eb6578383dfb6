"""What the hidden vectors are doing, read from the state on demand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from hvadam.core.scalars import FIELDS
from hvadam.torch import devices, storage
from hvadam.torch.kernels import Options
from hvadam.torch.sharding import is_sharded

if TYPE_CHECKING:
    from hvadam.torch.optimizer import HVAdam
    from hvadam.torch.rows import Table


class LastStep(NamedTuple):
    """The parameters that the last step moved, with their options; it holds no gradient."""

    moved: list[tuple[Options, list[Tensor]]]
    kernels: frozenset[str]
    scalars: Tensor | None  # of the first hidden vector
    version: int

    @classmethod
    def of(cls, table: Table) -> LastStep:
        """Return what is worth knowing of a step that has moved a table."""
        scalars = table.vectors.scalars[0] if table.vectors.scalars else None
        taken = frozenset(name for name, _ in table.batches)
        return cls(table.moved, taken, scalars, 0 if scalars is None else scalars._version)

    def is_stale(self) -> bool:
        """Return whether the scalars changed since: by a compiled step, say, which leaves none."""
        return self.scalars is not None and self.scalars._version != self.version


@torch.no_grad()
def diagnose(optimizer: HVAdam, last: LastStep | None) -> dict[str, dict[str, float]]:
    """Return ``{scope: {name: value}}`` for all hidden vectors that have scalars."""
    found: dict[str, dict[str, float]] = {}
    squares: dict[str, list[float]] = {}
    sharded = is_sharded(optimizer.param_groups, optimizer.shard_group)
    for name, scalars, moved in _scopes(optimizer, last):
        values: dict[str, float] = dict(zip(FIELDS, scalars.tolist(), strict=True))
        found[name] = values
        if sharded:
            continue
        total = squares.setdefault(name, [0.0, 0.0])
        for options, p in moved:
            parts = _update_parts(options, optimizer.state[p], values["hidden_gain"])
            total[0] += parts[0] ** 2
            total[1] += parts[1] ** 2
    for name, (adaptive, hidden) in squares.items():
        found[name]["adaptive_step_norm"] = math.sqrt(adaptive)
        found[name]["hidden_step_norm"] = math.sqrt(hidden)
        both = math.sqrt(adaptive) + math.sqrt(hidden)
        found[name]["hidden_share"] = math.sqrt(hidden) / both if both > 0 else 0.0
    return found


def _scopes(
    optimizer: HVAdam, last: LastStep | None
) -> Iterator[tuple[str, Tensor, list[tuple[Options, Tensor]]]]:
    """Yield each scope's name, its scalars, and who moved; "global" comes once per group."""
    if (
        last is None or last.is_stale()
    ):  # loaded or copied: all that has a state, with the options as they are
        taken = [
            (Options.of(group), [p for p in group["params"] if optimizer.state.get(p)])
            for group in optimizer.param_groups
        ]
    else:
        taken = last.moved
    # What somebody dropped from the state since has no part in what is told.
    moved = {p: options for options, params in taken for p in params if optimizer.state.get(p)}
    for i, group in enumerate(optimizer.param_groups):
        if group["scope"] != "tensor":
            present = [(moved[p], p) for p in group["params"] if p in moved]
            yield (
                "global" if group["scope"] == "global" else f"group {i}",
                group["scalars"],
                present,
            )
            continue
        names = group.get("param_names")
        for j, p in enumerate(group["params"]):
            if optimizer.state.get(p):
                name = names[j] if names else f"group {i}, tensor {j}"
                yield name, optimizer.state[p]["scalars"], [(moved[p], p)] if p in moved else []


def _update_parts(o: Options, state: dict[str, Any], gain: float) -> tuple[float, float]:
    """Return the norms of lr m_hat / (sqrt(s_hat) + eps) and of lr hidden_scale gain v."""
    t = float(state["step"])
    m, v, s = (storage.decoded(state, key) for key in ("exp_avg", "hidden", "exp_avg_var"))
    m_hat = m / (1.0 - o.beta1**t)
    adaptive = m_hat / ((s / (1.0 - o.beta2**t)).sqrt() + o.eps)
    lr = float(o.lr)
    along = lr * o.hidden_scale * gain
    return (
        lr * torch.linalg.vector_norm(adaptive, dtype=devices.widest(v.device)).item(),
        along * torch.linalg.vector_norm(v, dtype=devices.widest(v.device)).item(),
    )
