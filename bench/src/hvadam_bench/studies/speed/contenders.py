"""Optimizers that are timed, with their options, as data. A variant is one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Adam, AdamW, Optimizer

from hvadam.torch.optimizer import HVAdam
from hvadam.torch.self_check import without_native

LR = 1e-3
FEW, MANY = 20, 200  # tensors that take a minute to compile, and a quarter of an hour


class Streams(NamedTuple):
    """How often a step has to move each kind of number through memory, at the least."""

    direct: int  # reads and writes of parameters and gradients
    state: int  # reads and writes of state
    kinds: int  # tensors of state per parameter

    def bytes(self, state_bytes: float) -> float:
        """Return bytes per float32 parameter, with as much state per parameter as was measured."""
        return 4 * self.direct + self.state * state_bytes / self.kinds


@dataclass(frozen=True)
class Contender:
    """An optimizer with its options, and what its step has to move."""

    name: str
    optimizer: Callable[..., Optimizer]
    options: Mapping[str, Any]
    streams: Streams
    clip: float | None = None  # call clip_grad_norm_ with this before each step
    portable: bool = False  # hide the native kernel
    compiled: int = 0  # torch.compile the step, outside the clock, of up to so many tensors

    def build(self, params: Sequence[Tensor]) -> Optimizer:
        """Build the optimizer for these parameters."""
        if 0 < self.compiled < len(params):
            raise ValueError(
                f"{len(params):,} tensors take many minutes to compile; it is timed on up to "
                f"{FEW}, or with --compile-many on {MANY}."
            )
        # What is compiled has a tensor for its rate, as one that a schedule changes has to be.
        rate = {"lr": torch.tensor(LR)} if self.compiled else {}
        return self.optimizer(params, **self.options, **rate)

    def surroundings(self) -> AbstractContextManager[None]:
        """Return what has to hold while it is built and while it steps."""
        return without_native() if self.portable else nullcontext()


def _peer(module: str, name: str, package: str) -> Callable[..., Optimizer]:
    """Return the builder of an optimizer of a package that may be missing."""

    def build(params: Sequence[Tensor], **options: Any) -> Optimizer:
        try:
            optimizer = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            raise ImportError(f"{package} is not installed: pip install 'hvadam[peers]'") from error
        return optimizer(params, **options)

    return build


# Adam and AdaBelief read θ, g and two states and write all but g.
ADAM = Streams(direct=3, state=4, kinds=2)
# clip_grad_norm_ reads g, then reads and writes it.
ADAM_CLIPPED = ADAM._replace(direct=6)
# First pass: read g, m, v, s, write m, s. Second pass: read θ, m, v, s, write θ, v.
EXACT = Streams(direct=3, state=9, kinds=3)
# The norm has to be known before the first pass: one more read of g.
CLIPPED = EXACT._replace(direct=4)

REFERENCE = Contender("Adam fused", Adam, {"fused": True}, ADAM)
ADAMW = Contender("AdamW fused", AdamW, {"fused": True}, ADAM)


def _ours(kind: str, kernel: str, streams: Streams = EXACT, **options: Any) -> Contender:
    return Contender(f"HVAdam {kind}", HVAdam, {"kernel": kernel, **options}, streams)


# The kinds that are also timed with several threads and in whole training steps.
TRAINED = (
    _ours("native", "native"),
    _ours("native, bf16 state", "native", state_dtype="bfloat16"),
    _ours("native, int8 state", "native", state_dtype="int8"),
)
CONTENDERS = (
    *TRAINED,
    _ours("native, clipping", "native", CLIPPED, max_grad_norm=1.0),
    Contender("HVAdam portable", HVAdam, {"kernel": "auto"}, EXACT, portable=True),
    *(_ours(kernel, kernel) for kernel in ("loop", "foreach", "triton")),
    Contender("HVAdam compiled", HVAdam, {}, EXACT, compiled=FEW),
    REFERENCE,  # against another copy of itself, it shows the noise
    Contender("Adam fused, clipping", Adam, {"fused": True}, ADAM_CLIPPED, clip=1.0),
    ADAMW,
    Contender("Adam foreach", Adam, {"foreach": True}, ADAM),
    Contender("Adam loop", Adam, {"foreach": False}, ADAM),
    Contender(
        "AdaBelief adabelief-pytorch",
        _peer("adabelief_pytorch", "AdaBelief", "adabelief-pytorch"),
        {
            **{"lr": LR, "betas": (0.9, 0.999), "eps": 1e-16, "weight_decay": 0.0},
            **dict.fromkeys(("amsgrad", "weight_decouple", "fixed_decay", "rectify"), False),
            **{"degenerated_to_sgd": False, "print_change_log": False},
        },
        ADAM,
    ),
    Contender(
        "AdaBelief pytorch_optimizer",
        _peer("pytorch_optimizer", "AdaBelief", "pytorch_optimizer"),
        {"weight_decouple": False, "rectify": False},
        ADAM,
    ),
)
