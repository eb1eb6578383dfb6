"""What the hidden vectors are doing, read from the state on demand."""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from hvadam.core import meter
from hvadam.core.scalars import FIELDS
from hvadam.torch import devices, gradients, storage
from hvadam.torch.kernels import Options
from hvadam.torch.policy import HiddenVectors
from hvadam.torch.sharding import is_sharded

if TYPE_CHECKING:
    from hvadam.torch.optimizer import HVAdam
    from hvadam.torch.rows import Table


class LastStep(NamedTuple):
    """The parameters that the last step moved, with their options; it holds no gradient."""

    moved: list[tuple[Options, list[Tensor]]]
    kernels: frozenset[str]
    vectors: HiddenVectors
    version: int  # that of the first hidden vector's scalars
    gradient: tuple[weakref.ref[Tensor], int] | None  # of the first row, and its version
    factor: Any  # on the gradients: clipping and unscaling

    @classmethod
    def of(cls, table: Table) -> LastStep:
        """Return what is worth knowing of a step that has moved a table."""
        vectors, taken = table.vectors, frozenset(name for name, _ in table.batches)
        version = vectors.scalars[0]._version if vectors.scalars else 0
        first = next((p.grad for _, params in table.moved for p in params), None)
        gradient = None if first is None else (weakref.ref(first), first._version)
        factor = next((own[0].options.factor for own in table.batches.values()), 1.0)
        return cls(table.moved, taken, vectors, version, gradient, factor)

    def is_stale(self) -> bool:
        """Return whether the scalars changed since: by a compiled step, say, which leaves none."""
        scalars = self.vectors.scalars
        return bool(scalars) and scalars[0]._version != self.version

    def has_gradients(self) -> bool:
        """Return whether the gradients of the step are still there, as far as the first tells."""
        if self.gradient is None:
            return False
        reference, version = self.gradient
        first = next(p for _, params in self.moved for p in params)
        grad = first.grad
        return grad is not None and reference() is grad and grad._version == version


@torch.no_grad()
def diagnose(optimizer: HVAdam, last: LastStep | None) -> dict[str, dict[str, float]]:
    """Return ``{scope: {name: value}}`` for all hidden vectors that have scalars."""
    found: dict[str, dict[str, float]] = {}
    sharded = is_sharded(optimizer.param_groups, optimizer.shard_group)
    last = None if last is None or last.is_stale() else last
    for name, scope in _scopes(optimizer, last).items():
        values: dict[str, float] = dict(zip(FIELDS, scope.scalars.tolist(), strict=True))
        found[name] = values
        if sharded:
            continue
        gain = values["hidden_gain"]
        parts = [_update_parts(o, optimizer.state[p], gain) for o, p in scope.moved]
        adaptive, hidden = (math.hypot(*(part[i] for part in parts)) for i in range(2))
        both = adaptive + hidden
        values["adaptive_step_norm"], values["hidden_step_norm"] = adaptive, hidden
        values["hidden_share"] = hidden / both if both > 0 else 0.0
        values |= _shares(scope, last)
    return found


@dataclass
class _Scope:
    """A hidden vector with what it spans."""

    scalars: Tensor
    kept: list[dict[str, Any]]  # the states of its parameters
    moved: list[tuple[Options, Tensor]]  # those that took part in the last step


def _scopes(optimizer: HVAdam, last: LastStep | None) -> dict[str, _Scope]:
    """Return each hidden vector with what it spans, by name.

    An optimizer that was loaded or copied has taken no step that is known: then all that has a
    state counts as moved, with the options as they are.
    """
    state = optimizer.state
    taken = last.moved if last else [(Options.of(g), g["params"]) for g in optimizer.param_groups]
    # What somebody dropped from the state since has no part in what is reported.
    moved = {p: options for options, params in taken for p in params if state.get(p)}
    found: dict[str, _Scope] = {}
    for i, group in enumerate(optimizer.param_groups):
        names = group.get("param_names")
        for j, p in enumerate(group["params"]):
            name = "global" if group["scope"] == "global" else f"group {i}"
            own: Any = group
            if group["scope"] == "tensor":
                if not state.get(p):
                    continue
                name, own = names[j] if names else f"group {i}, tensor {j}", state[p]
            scope = found.setdefault(name, _Scope(own["scalars"], [], []))
            if state.get(p):
                scope.kept.append(state[p])
            if p in moved:
                scope.moved.append((moved[p], p))
    return found


def _shares(scope: _Scope, last: LastStep | None) -> dict[str, float]:
    """Return what the gradient of the last step was made of; {} where that cannot be known."""
    options = [o for o, _ in scope.moved]
    grads = [p.grad for _, p in scope.moved if p.grad is not None]
    counts = {float(state["step"]) for state in scope.kept}
    if (
        last is None
        or not (last.has_gradients() and len(grads) == len(options) == len(scope.kept))
        or counts != {scope.scalars[FIELDS.index("step")].item()}  # one missed a gradient
        or len({o.beta1 for o in options}) > 1
        or any(o.coupled_decay for o in options)  # which joins the gradient, by θ as it was
    ):
        return {}
    scopes = [x is scope.scalars for x in last.vectors.scalars]
    place = scopes.index(True) if True in scopes else 0
    found = meter.shares_of_step(
        [float(x) for x in last.vectors.before[place]],
        [float(x) for x in last.vectors.dots[place]],
        float(gradients.squared_norm(grads)) * float(last.factor) ** 2,
        beta1=float(options[0].beta1),
        rounding=last.vectors.rounding[place],
    )
    return {} if math.isnan(found["rest"]) else found


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
