"""What does HVAdam cost on many ranks? Memory and communication, by formulas, and checked.

What the page's formulas say of communication is checked by steps under torch's fake process group,
which does everything but send.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hvadam_bench.studies._study import Place, Study
from hvadam_bench.studies.scaling import page, plan

VARIANTS: dict[str, dict[str, Any]] = {
    "HVAdam": {},
    "HVAdam, clipping inside": {"max_grad_norm": 1.0},
}


@dataclass(frozen=True)
class Scaling:
    """What one step handed to collectives: optimizer, ranks, collectives and bytes of each."""

    simulated: tuple[Mapping[str, Any], ...]


def measure(plan: Sequence[int], place: Place) -> dict[str, Scaling]:
    """Return what steps hand to collectives, with and without clipping."""
    found: list[dict[str, Any]] = []
    for ranks in plan:
        for name, options in VARIANTS.items():
            place.on_progress(f"{name} on {ranks} ranks", 0.0)
            found.append({"optimizer": name, "ranks": ranks, **simulate(ranks, options)})
            place.on_progress("", 1 / len(plan) / len(VARIANTS))
    return {"scaling": Scaling(tuple(found))}


def simulate(ranks: int, options: dict[str, Any]) -> dict[str, int]:
    """Return the collectives, and the bytes handed to them, of one step on so many ranks."""
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from torch.utils._python_dispatch import TorchDispatchMode

    from hvadam.torch.optimizer import HVAdam

    handed: list[int] = []

    class Listener(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            if func.namespace in ("c10d", "_c10d_functional"):
                tensors = args[0] if isinstance(args[0], (list, tuple)) else [args[0]]
                handed.append(sum(x.numel() * x.element_size() for x in tensors))
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
    return {"collectives": len(handed), "bytes": sum(handed)}


STUDY = Study(
    "scaling",
    "Work out what HVAdam costs on many ranks, and check it with a fake process group.",
    plan.plan,
    measure,
    page.render,
    {"scaling": Scaling},
)
