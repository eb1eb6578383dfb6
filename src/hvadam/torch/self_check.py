"""Which kernels run here, which ones a step takes, and whether they compute what they should.

`hvadam info` and `hvadam check` show it. ``kernel="auto"`` takes the Triton kernel on a device only
if that agrees there: before it moves a parameter, it takes a few steps over small tensors of its
own, with the state that is in use, versus the reference or the loop kernel. If compiling it fails
or does not end, or if the two differ, the portable kernels serve, and one warning says why. Ranks
that decide differently take the same steps but for rounding, and no collective waits.

Comparisons are teacher-forced: before each step the judge is given the optimizer's own parameters,
gradients and state. What low-bit state keeps depends on random bits, the same for all kernels:
there the loop kernel is held to the reference as far as rounding allows, and the others to the loop
kernel.
"""

from __future__ import annotations

import copy
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from hvadam.core.hyperparams import Hyperparams
from hvadam.core.reference import ScopeState, Slot, step
from hvadam.core.scalars import FIELDS
from hvadam.torch import groups, kernels, storage

if TYPE_CHECKING:
    from hvadam.torch.optimizer import HVAdam

# Seconds to compile and run the check; an hour would be spent as silently.
PATIENCE = 180.0

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


class _Key(NamedTuple):
    device: torch.device
    kept: torch.dtype  # that m is kept in


_decided: dict[_Key, bool] = {}


def reasons() -> dict[str, str | None]:
    """Return, for each kernel, None or the reason why it cannot run here."""
    return {name: module.available() for name, module in kernels.KERNELS.items()}


def instruction_set() -> str | None:
    """Return the native kernel's instruction set, None where it is not available."""
    return kernels.instruction_set() if kernels.KERNELS["native"].available() is None else None


def instruction_set_chosen_by() -> str | None:
    """Return the variable that chose the native kernel's instruction set, None if none did."""
    return kernels.ISA if instruction_set() and os.environ.get(kernels.ISA) else None


def kernels_of(optimizer: Optimizer) -> list[str]:
    """Return the kernels that the last step of an HVAdam took; [] for other optimizers."""
    last = getattr(optimizer, "_last_step", None)
    return [name for name in kernels.KERNELS if last is not None and name in last.kernels]


def automatic_kernels() -> dict[str, list[str]]:
    """Return what kernel="auto" takes on a CPU, for tensors of either size."""
    sizes = {"small tensors": 1, "large tensors": 1 << 16}
    return {words: _taken("auto", "cpu", "float32", ((size,),)) for words, size in sizes.items()}


@contextmanager
def without_native() -> Iterator[None]:
    """Behave as if hvadam had been installed without a compiler."""
    native = kernels.KERNELS["native"]
    switched_off: Any = SimpleNamespace(available=lambda: "it is switched off for now.")
    kernels.KERNELS["native"] = switched_off
    try:
        yield
    finally:
        kernels.KERNELS["native"] = native


def trusts_triton(device: torch.device, kept: torch.dtype) -> bool:
    """Return whether the Triton kernel computes on a device what it should; found out once.

    Args:
        device: Where.
        kept: The dtype that m is kept in, which tells the kind of state.

    While a CUDA graph is being captured nothing can be tried: what is not decided yet is then no,
    and is decided at the next step outside of one.
    """
    key = _Key(device, kept)
    if key not in _decided:
        if _is_capturing(device):
            return False
        doubt = _find_doubt(key)
        _decided[key] = doubt is None
        if doubt is not None:
            _warn(device, doubt)
    return _decided[key]


def forget() -> None:
    """Forget what was decided, so that it is found out again."""
    _decided.clear()


def trials() -> Iterator[Trial]:
    """Yield a trial of every kernel, device and kind of state that go together."""
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    for kernel, reason in reasons().items():
        if reason is not None:
            yield Trial(kernel, unavailable=reason)
            continue
        for device in devices:
            for state in STATES:
                if _taken(kernel, device, state, SHAPES) == [kernel]:
                    yield trial(kernel, device, state)


def trial(kernel: str, device: str, state: str) -> Trial:
    """Return a trial of one kernel that is available, on one device with one kind of state."""
    judge, allowed = _judge(kernel, state)
    differences = [_difference(kernel, device, state, batch) for batch in BATCHES]
    worst = float(np.max(differences))  # NaN wins
    return Trial(kernel, device, state, None, judge, worst, allowed)


def _taken(kernel: str, device: str, state: str, shapes: Any) -> list[str]:
    """Return the kernels that a step over tensors of some shapes takes."""
    params, optimizer = _made(kernel, device, state, {}, torch.Generator().manual_seed(0), shapes)
    for p in params:
        p.grad = torch.ones_like(p)
    optimizer.step()
    return kernels_of(optimizer)


def _find_doubt(key: _Key) -> str | None:
    """Return why the kernel cannot be trusted, None if it can."""
    found: list[str | None] = []

    def check() -> None:
        try:
            found.append(_compare(key))
        except Exception as error:  # a compiler may raise anything
            line = (str(error).strip().splitlines() or ["no reason given"])[0]
            found.append(f"it raised {type(error).__name__}: {line}")

    # In a thread of its own, for a compiler that hangs cannot be interrupted.
    thread = threading.Thread(target=check, name="hvadam self-check", daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return found[0] if found else f"it was not ready after {PATIENCE:g} seconds"


def _compare(key: _Key) -> str | None:
    """Return how far the kernel is from its judge, None if by no more than rounding."""
    with torch.no_grad():
        state = str(key.kept).removeprefix("torch.")
        found = trial("triton", str(key.device), state)
    if found.agrees:
        return None
    return (
        f"with {state} state it is off by {found.difference:.0e} from the {found.judge}, where "
        f"{found.allowed:.0e} is rounding"
    )


def _is_capturing(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def _warn(device: torch.device, doubt: str) -> None:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "interpreted"
    warnings.warn(
        f"HVAdam: the Triton kernel is not used on {device} ({name}), for {doubt}. The portable "
        "kernels serve instead: right, but slower. Please report this with the table that `hvadam "
        'check` prints; kernel="foreach" silences it.',
        stacklevel=2,
    )


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
    kernel: Any,
    device: str,
    state: str,
    options: dict[str, Any],
    generator: torch.Generator,
    shapes: tuple[tuple[int, ...], ...] = SHAPES,
) -> tuple[list[torch.nn.Parameter], HVAdam]:
    """Return a few small parameters and an optimizer of them."""
    from hvadam.torch.optimizer import HVAdam  # whose step asks this module

    parameters, state_dtype, *_ = STATES[state]
    params = [
        torch.nn.Parameter(_randn(shape, generator, device).to(parameters)) for shape in shapes
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
