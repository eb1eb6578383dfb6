"""What HVAdam costs on many ranks beside AdamW: memory and communication, worked out and checked.

The page's formulas are the functions below; what they say of communication is checked by steps
under torch's fake process group, which does everything but send.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hvadam_bench.studies._study import Place
from hvadam_bench.studies.scaling.plan import Plan

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
        """Return bytes a rank: a float32 parameter and gradient beside the state, all sharded."""
        return parameters * (4 + 4 + self.state) / ranks

    def sent(self, ranks: int) -> float:
        """Return the bytes that a rank sends in one step, in a ring, which passes all on twice."""
        return 2 * (ranks - 1) / ranks * self.scalars * DOUBLE


OPTIMIZERS = (
    Optimizer("AdamW", 8),
    Optimizer("HVAdam", 12, SUMS, 1),
    Optimizer("HVAdam, clipping inside", 12, SUMS + GUARDS, 2),
    Optimizer("HVAdam, bfloat16 state", 6, SUMS, 1),
)


@dataclass(frozen=True)
class Worked:
    """An optimizer in the worked example: what it keeps, moves and computes for a parameter.

    Attributes:
        name: For people.
        state: Bytes a parameter that it keeps.
        passes: How often a step reads or writes all of the state.
        direct: How often it reads or writes the float32 parameter or gradient.
        flops: Of matrix products a parameter, in bfloat16.
    """

    name: str
    state: float
    passes: float
    direct: int = 3
    flops: float = 0.0

    def moved(self) -> float:
        """Return the bytes a parameter that a step has to move through memory."""
        return 4 * self.direct + self.passes * self.state

    def seconds(self, parameters: float) -> float:
        """Return the time of a step over so many parameters at the published rates of a GPU."""
        return parameters * (self.moved() / BANDWIDTH + self.flops / MATRIX_RATE)


# Of an H100 SXM, as its maker publishes them: bytes a second, and dense bfloat16 products a second.
BANDWIDTH, MATRIX_RATE = 3.35e12, 989e12
WIDTH = 4096  # of a 7B model's layers
# Five rounds of Newton and Schulz, each of three products of square matrices, 2 flops an addend.
ORTHOGONALIZATION = 5 * 3 * 2 * WIDTH
SCALES = 4 / 256  # a float32 for each block of 256
# State read and written once is 2 passes. HVAdam reads m, v, s twice and writes each once: 9 of 3.
WORKED = (
    Worked("AdamW", 8, 2),
    Worked("HVAdam", 12, 3),
    Worked("HVAdam, bfloat16 state", 6, 3),
    Worked("HVAdam, int8 state", 3 * (1 + SCALES), 3),
    Worked("8-bit Adam", 2 * (1 + SCALES), 2),
    # Its momentum is read and written, and what is made of it written and read once more.
    Worked("Muon", 4, 2, direct=5, flops=ORTHOGONALIZATION),
)


@dataclass(frozen=True)
class Simulated:
    """What one step handed to collectives, under a fake process group."""

    optimizer: str
    ranks: int
    collectives: int
    bytes: int


@dataclass(frozen=True)
class Scaling:
    """The steps that were simulated; the rest of the page is formulas."""

    simulated: tuple[Simulated, ...]


def model_traffic(parameters: float, ranks: int) -> float:
    """Return the bytes that FSDP2 itself sends a rank and step, whatever the optimizer.

    Parameters are gathered in bfloat16 for forward and again for backward, gradients are
    reduce-scattered in float32: (2 + 2 + 4) bytes a parameter, each passed on by all but one rank.
    """
    return parameters * 8 * (ranks - 1) / ranks


def simulate(ranks: int, options: dict[str, Any]) -> tuple[int, int]:
    """Return the collectives, and the bytes handed to them, of one step on so many ranks."""
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


def measure(plan: Plan, place: Place) -> dict[str, Scaling]:
    """Return what steps hand to collectives, with and without clipping."""
    variants: dict[str, dict[str, Any]] = {
        "HVAdam": {},
        "HVAdam, clipping inside": {"max_grad_norm": 1.0},
    }
    found: list[Simulated] = []
    for ranks in plan.ranks:
        for name, options in variants.items():
            place.on_progress(f"{name} on {ranks} ranks", 0.0)
            found.append(Simulated(name, ranks, *simulate(ranks, options)))
            place.on_progress("", 1 / len(plan.ranks) / len(variants))
    return {"scaling": Scaling(tuple(found))}
