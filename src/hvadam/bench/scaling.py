"""What HVAdam costs on many ranks beside AdamW: memory and communication, worked out and checked.

``python -m hvadam.bench.scaling`` writes ``docs/scaling.md``. The page's formulas are the functions
below; what they say of communication is checked by steps under torch's fake process group, which
does everything but send.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODELS = {"1B": 1e9, "7B": 7e9, "70B": 70e9}
RANKS = (8, 64, 256, 1024)
SUMS = 5  # of a hidden vector: four dots, and whether anyone had a gradient
GUARDS = 2  # with clipping or a grad scaler: the squared norm, and whether anyone found an inf
DOUBLE = 8


@dataclass(frozen=True)
class Optimizer:
    """Bytes a parameter that an optimizer keeps, and what it sends in a step."""

    name: str
    state: float
    scalars: int = 0  # doubles a step
    collectives: int = 0

    def memory(self, parameters: float, ranks: int) -> float:
        """Bytes a rank: a float32 parameter and gradient beside the state, all sharded."""
        return parameters * (4 + 4 + self.state) / ranks

    def sent(self, ranks: int) -> float:
        """Bytes a rank in one step: a ring all-reduce passes everything around twice."""
        return 2 * (ranks - 1) / ranks * self.scalars * DOUBLE


OPTIMIZERS = (
    Optimizer("AdamW", 8),
    Optimizer("HVAdam", 12, SUMS, 1),
    Optimizer("HVAdam, clipping inside", 12, SUMS + GUARDS, 2),
    Optimizer("HVAdam, bfloat16 state", 6, SUMS, 1),
)


def model_traffic(parameters: float, ranks: int) -> float:
    """Bytes a rank that FSDP2 itself sends in a step, whatever the optimizer.

    Parameters are gathered in bfloat16 for forward and again for backward, gradients are
    reduce-scattered in float32: (2 + 2 + 4) bytes a parameter, each passed on by all but one rank.
    """
    return parameters * 8 * (ranks - 1) / ranks


def simulate(ranks: int, options: dict[str, Any]) -> tuple[int, int]:
    """Collectives and bytes handed to them in one step of a sharded HVAdam on so many ranks."""
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from torch.utils._python_dispatch import TorchDispatchMode

    from hvadam.torch.optimizer import HVAdam

    class Listener(TorchDispatchMode):
        calls = 0
        bytes = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            if func.namespace in ("c10d", "_c10d_functional"):
                Listener.calls += 1
                tensors = args[0] if isinstance(args[0], (list, tuple)) else [args[0]]
                Listener.bytes += sum(x.numel() * x.element_size() for x in tensors)
            return func(*args, **kwargs or {})

    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    try:
        model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(3)))
        fully_shard(model, mesh=init_device_mesh("cpu", (ranks,)))
        optimizer = HVAdam(model.parameters(), **options)
        for p in model.parameters():
            p.grad = torch.ones_like(p)
        optimizer.step()  # the first one also compares layouts
        with Listener():
            optimizer.step()
    finally:
        dist.destroy_process_group()
    return Listener.calls, Listener.bytes


def render() -> str:
    """The page."""
    checks = [
        (ranks, name, *simulate(ranks, options))
        for ranks in (8, 64)
        for name, options in (("HVAdam", {}), ("HVAdam, clipping inside", {"max_grad_norm": 1.0}))
    ]
    memory = [
        f"| {size} | {ranks} | "
        + " | ".join(_size(OPTIMIZERS[i].memory(parameters, ranks)) for i in (0, 1, 3))
        + " |"
        for size, parameters in MODELS.items()
        for ranks in RANKS
    ]
    traffic = [
        f"| {size} | {ranks} | {_size(model_traffic(parameters, ranks))} | "
        f"{OPTIMIZERS[1].sent(ranks):.0f} B | {OPTIMIZERS[2].sent(ranks):.0f} B | "
        f"{OPTIMIZERS[1].sent(ranks) / model_traffic(parameters, ranks):.0e} |"
        for size, parameters in MODELS.items()
        for ranks in RANKS
    ]
    simulated = [
        f"| {name} | {ranks} | {calls} | {handed} B |" for ranks, name, calls, handed in checks
    ]
    return _PAGE.format(
        memory="\n".join(memory), traffic="\n".join(traffic), simulated="\n".join(simulated)
    )


def _size(count: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


_PAGE = """\
# What it costs on many ranks

Worked out for FSDP2 (`fully_shard`): float32 parameters and gradients, all sharded; activations,
which do not depend on the optimizer, left out. Written by `python -m hvadam.bench.scaling`.

## Memory

A rank holds `parameters / ranks` of everything:

    bytes = parameters * (4 parameter + 4 gradient + state) / ranks

with a state of 8 bytes for AdamW, 12 for HVAdam (m, v, s), 6 with `state_dtype="bfloat16"`.

| model | ranks | AdamW | HVAdam | HVAdam, bfloat16 state |
|---|---|---|---|---|
{memory}

## Communication

The hidden vector spans all ranks through one all-reduce a step: four dots in float64 and one flag,
5 doubles = 40 bytes, whatever the size of the model (`scope="group"` and `"tensor"` take as many
for each hidden vector). `max_grad_norm`, or a grad scaler, adds one of 2 doubles before anything is
written; AdamW with `clip_grad_norm_` has that one too. A ring passes an all-reduce around twice:

    bytes sent = 2 * (ranks - 1) / ranks * 8 * doubles

FSDP2 itself gathers parameters twice (bfloat16) and reduce-scatters gradients (float32):

    bytes sent = (ranks - 1) / ranks * parameters * (2 + 2 + 4)

| model | ranks | the model's own | HVAdam adds | with clipping inside | share |
|---|---|---|---|---|---|
{traffic}

In bytes it is nothing. In time it is one latency of a small all-reduce a step, at the one place
where a step waits for all ranks; DDP needs none, for there every rank has all gradients.

## Checked

Steps under torch's fake process group, which does everything but send: calls of collectives in one
step, and the bytes handed to them.

| | ranks | collectives a step | bytes |
|---|---|---|---|
{simulated}

Real ranks are counted too, in `tests/torch/distributed`. Beyond four ranks of one machine nothing
here has been run: no network of many machines has seen it yet.
"""


def main() -> None:
    """Write the page."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/scaling.md")
    target.write_text(render())


if __name__ == "__main__":
    main()
