"""Every kernel that runs here, held to the float64 reference on a few small batches.

Teacher-forced: before each step the judge is given the optimizer's own parameters, gradients and
state. What low-bit state keeps depends on random bits, the same for all kernels: there the loop
kernel is held to the reference as far as rounding allows, and the others to the loop kernel.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from hvadam.core.hyperparams import Hyperparams
from hvadam.core.reference import ScopeState, Slot, step
from hvadam.core.scalars import FIELDS
from hvadam.torch import groups, storage, survey
from hvadam.torch.optimizer import HVAdam

Vectors: TypeAlias = dict[str, np.ndarray]  # all tensors as one vector, by what they are

SHAPES = ((), (3,), (17, 5), (4099,))
STEPS = 4
BATCHES: tuple[dict[str, Any], ...] = (  # options that take other ways through a kernel
    {},
    {"hidden_gain": "linear", "bounds": (-1.0, 1.0)},
    {"max_grad_norm": 1.0, "maximize": True, "weight_decay": 0.1, "weight_decay_mode": "coupled"},
    {"preconditioner": "adam", "weight_decay": 0.1, "eps": 1e-8},
)


class State(NamedTuple):
    """How m, v and s are kept, and how far from its judge a kernel may be."""

    parameters: torch.dtype
    state_dtype: Any
    allowed: float  # by roundings of the arithmetic
    kept: float = 0.0  # by those of low-bit state besides, where the reference has none


# By the dtype that m is kept in.
STATES = {
    "float64": State(torch.float64, "float32", 1e-12),
    "float32": State(torch.float32, "float32", 1e-5),
    "bfloat16": State(torch.float32, "bfloat16", 1e-2, kept=0.05),
    "int8": State(torch.float32, "int8", 1e-2, kept=0.5),
}


class Trial(NamedTuple):
    """A kernel on a device with a kind of state, beside its judge."""

    kernel: str
    device: str = ""
    state: str = ""
    unavailable: str | None = None  # why the kernel cannot run here
    judge: str = ""
    difference: float = 0.0  # the largest of θ's move, m, v and s, as a part of the judge's
    allowed: float = 0.0

    @property
    def agrees(self) -> bool:
        """Return whether the difference is one of rounding, which NaN is not."""
        return self.unavailable is not None or self.difference <= self.allowed


def trials() -> Iterator[Trial]:
    """Yield a trial of every kernel, device and kind of state that go together."""
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    for kernel, reason in survey.reasons().items():
        if reason is not None:
            yield Trial(kernel, unavailable=reason)
            continue
        for device in devices:
            for state in STATES:
                if _serves(kernel, device, state):
                    yield trial(kernel, device, state)


def trial(kernel: str, device: str, state: str) -> Trial:
    """Return a trial of one kernel that is available, on one device with one kind of state."""
    judge, allowed = _judge(kernel, state)
    differences = [_difference(kernel, device, state, batch) for batch in BATCHES]
    worst = float(np.max(differences))  # NaN wins
    return Trial(kernel, device, state, None, judge, worst, allowed)


def _serves(kernel: str, device: str, state: str) -> bool:
    """Tell whether a kernel takes such tensors itself, by watching a step."""
    _, optimizer = _made(kernel, device, state, {}, torch.Generator().manual_seed(0))
    for p in optimizer.param_groups[0]["params"]:
        p.grad = torch.ones_like(p)
    return survey.kernels_of(optimizer.step) == [kernel]


def _judge(kernel: str, state: str) -> tuple[str, float]:
    """Return who judges, and what is allowed."""
    _, state_dtype, allowed, kept = STATES[state]
    if state_dtype != "float32" and kernel != "loop":
        return "loop", allowed
    return "reference", allowed + kept


def _difference(kernel: str, device: str, state: str, options: dict[str, Any]) -> float:
    """Return how far a kernel is from its judge."""
    generator = torch.Generator().manual_seed(0)
    params, optimizer = _made(kernel, device, state, options, generator)
    parameters = STATES[state].parameters
    trend = [_randn(shape, generator, device) for shape in SHAPES]
    by_loop = _judge(kernel, state)[0] == "loop"
    found = [0.0]
    for _ in range(STEPS):
        for p, t in zip(params, trend, strict=True):
            p.grad = (t + _randn(tuple(p.shape), generator, device)).to(parameters)
        before = _vectors(optimizer)["theta"]
        expected = _loop_step(optimizer) if by_loop else _reference_step(optimizer)
        optimizer.step()
        actual = _vectors(optimizer)
        for vectors in (expected, actual):
            vectors["theta"] -= before
        found += [
            float(np.linalg.norm(actual[name] - x) / max(float(np.linalg.norm(x)), 1e-300))
            for name, x in expected.items()
        ]
    return float(np.max(found))


def _made(
    kernel: Any, device: str, state: str, options: dict[str, Any], generator: torch.Generator
) -> tuple[list[torch.nn.Parameter], HVAdam]:
    """Return an optimizer of a few small parameters, and these."""
    parameters, state_dtype, *_ = STATES[state]
    params = [
        torch.nn.Parameter(_randn(shape, generator, device).to(parameters)) for shape in SHAPES
    ]
    return params, HVAdam(params, lr=0.1, kernel=kernel, state_dtype=state_dtype, **options)


def _loop_step(optimizer: HVAdam) -> Vectors:
    """Return where the loop kernel gets to from here."""
    twin = copy.deepcopy(optimizer)
    (group,), (own,) = optimizer.param_groups, twin.param_groups
    for p, copied in zip(group["params"], own["params"], strict=True):
        copied.grad = p.grad
    own["kernel"] = "loop"
    twin.step()
    return _vectors(twin)


def _reference_step(optimizer: HVAdam) -> Vectors:
    """Return where the reference gets to from here."""
    (group,) = optimizer.param_groups
    hyper = Hyperparams(**{name: group[name] for name in groups.OPTIONS if name != "kernel"})
    slots: list[Slot] = []
    for p in group["params"]:
        slot = Slot(_array(p), hyper)
        state = optimizer.state.get(p)
        if state:
            slot.m, slot.v, slot.s = (
                _array(storage.decoded(state, name)) for name in storage.SCALES
            )
            slot.t = int(state["step"])
        slots.append(slot)
    x = dict(zip(FIELDS, group["scalars"].tolist(), strict=True))
    scope = ScopeState(int(x["step"]), int(x["steps_since_restart"]), x["alignment_ema"])
    grads: list[Any] = [_array(p.grad) for p in group["params"]]
    if hyper.max_grad_norm is not None:
        norm = np.linalg.norm(np.concatenate([g.ravel() for g in grads]))
        grads = [g * min(1.0, hyper.max_grad_norm / (norm + 1e-6)) for g in grads]
    dtype = storage.dtypes_of(group["params"][0], group["state_dtype"])[0]
    step(scope, slots, grads, rounding=storage.rounding(dtype))
    return {
        name: np.concatenate([getattr(slot, name).ravel() for slot in slots])
        for name in ("theta", "m", "v", "s")
    }


def _vectors(optimizer: HVAdam) -> Vectors:
    """Return parameters and state, in float64."""
    params = optimizer.param_groups[0]["params"]
    found = {"theta": [_array(p) for p in params]}
    for short, name in zip("mvs", storage.SCALES, strict=True):
        found[short] = [
            _array(storage.decoded(state, name))
            for p in params
            if (state := optimizer.state.get(p))
        ]
    return {
        name: np.concatenate([x.ravel() for x in arrays])
        for name, arrays in found.items()
        if arrays
    }


def _array(x: Tensor) -> np.ndarray:
    """Return a copy in float64."""
    return x.detach().cpu().double().numpy().copy()


def _randn(shape: tuple[int, ...], generator: torch.Generator, device: str) -> Tensor:
    """Return normal numbers, the same on every device."""
    return torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu").to(device)
