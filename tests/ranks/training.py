"""One small training, whole or laid out over ranks in every way that torch offers."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

from hvadam import HVAdam

BATCH = 16
LAYOUTS = ("ddp", "fsdp2", "hsdp", "tensor_parallel", "fsdp2_x_tp", "mixed", "offload")


class Model(nn.Module):
    """A network with rows of 8, 5, 7 and 1, uneven over ranks; the last is empty on most."""

    def __init__(self, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        self.first = nn.Linear(3, 8, dtype=dtype)
        self.second = nn.Linear(8, 5, dtype=dtype)
        self.third = nn.Linear(5, 7, dtype=dtype)
        self.last = nn.Linear(7, 1, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of a batch."""
        for layer in (self.first, self.second, self.third):
            x = torch.tanh(layer(x))
        return self.last(x)


def make_model(dtype: torch.dtype = torch.float64) -> Model:
    """Build the same model every time."""
    torch.manual_seed(0)
    return Model(dtype)


def batch(step: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Return the inputs and targets of a step."""
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(BATCH, 3, generator=generator, dtype=dtype)
    return x, x.prod(1, keepdim=True) + 0.1 * torch.randn(BATCH, 1, generator=generator).to(dtype)


def two_groups(model: nn.Module) -> list[dict[str, Any]]:
    """Split parameters into weights, which decay, and biases, which do not."""
    params = list(model.parameters())
    return [
        {"params": [p for p in params if p.ndim > 1], "weight_decay": 0.01},
        {"params": [p for p in params if p.ndim < 2], "weight_decay": 0.0},
    ]


def lay_out(model: Model, layout: str) -> tuple[nn.Module, int, int]:
    """Return the model laid out, which share of the batch is this rank's, and of how many."""
    rank, world = dist.get_rank(), dist.get_world_size()
    if layout == "ddp":
        return DistributedDataParallel(model), rank, world
    if layout == "tensor_parallel":
        _parallelize(model, init_device_mesh("cpu", (world,)))
        return model, 0, 1
    if layout in ("hsdp", "fsdp2_x_tp"):
        mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("outer", "inner"))
        if layout == "hsdp":
            return _shard(model, mesh), rank, world
        _parallelize(model, mesh["inner"])
        return _shard(model, mesh["outer"]), mesh.get_coordinate()[0], 2  # pyright: ignore[reportOptionalSubscript]
    mesh = init_device_mesh("cpu", (world,))
    if layout == "offload":
        return _shard(model, mesh, offload_policy=CPUOffloadPolicy(pin_memory=False)), rank, world
    if layout == "mixed":
        # Plain, replicated and sharded parameters side by side; the first three layers see the
        # whole batch on every rank, so their gradients need no reduction.
        for name, p in model.second.named_parameters():
            setattr(
                model.second, name, nn.Parameter(distribute_tensor(p.data, mesh, [Replicate()]))
            )
        model.second.register_forward_pre_hook(
            lambda _, inputs: (DTensor.from_local(inputs[0], mesh, [Replicate()]),)
        )
        model.second.register_forward_hook(lambda _module, _inputs, out: out.to_local())
        for name, p in model.third.named_parameters():
            setattr(model.third, name, nn.Parameter(distribute_tensor(p.data, mesh, [Shard(0)])))
        model.third.register_forward_pre_hook(
            lambda _, inputs: (DTensor.from_local(inputs[0], mesh, [Replicate()]),)
        )
        model.third.register_forward_hook(
            lambda _module, _inputs, out: out.redistribute(mesh, [Replicate()]).to_local()
        )
        return model, 0, 1
    return _shard(model, mesh), rank, world


def train(
    layout: str | None,
    options: dict[str, Any] | None = None,
    steps: int = 50,
    micro_batches: int = 1,
) -> dict[str, Any]:
    """Train and return whole parameters, what the last step communicated, and diagnostics."""
    model = make_model()
    runs: tuple[nn.Module, int, int] = (model, 0, 1)
    if layout is not None:
        runs = lay_out(model, layout)
    running, share, shares = runs
    optimizer = HVAdam(two_groups(running), lr=0.02, **options or {})
    communicated = 0
    for step in range(steps):
        optimizer.zero_grad()
        x, y = (t.chunk(shares)[share] for t in batch(step))
        for i in range(micro_batches):
            if isinstance(running, FSDPModule):  # gradients are reduced with the last one
                running.set_requires_gradient_sync(i == micro_batches - 1)
            part_x, part_y = (t.chunk(micro_batches)[i] for t in (x, y))
            loss = nn.functional.mse_loss(running(part_x), part_y) / micro_batches
            loss.backward()
        with CommDebugMode() as counter:
            optimizer.step()
        communicated = counter.get_total_counts()
    return {
        "params": {
            name.removeprefix("module."): whole(p) for name, p in running.named_parameters()
        },
        "communicated": communicated,
        "diagnostics": optimizer.diagnostics(),
    }


def whole(p: Tensor) -> Tensor:
    """Return all of a tensor, wherever its parts are."""
    return p.full_tensor().detach() if isinstance(p, DTensor) else p.detach().clone()


def _shard(model: Model, mesh: Any, **options: Any) -> nn.Module:
    for layer in (model.first, model.second, model.third, model.last):
        fully_shard(layer, mesh=mesh, **options)
    fully_shard(model, mesh=mesh, **options)
    return model


def _parallelize(model: Model, mesh: Any) -> None:
    parallelize_module(model, mesh, {"first": ColwiseParallel(), "second": RowwiseParallel()})
