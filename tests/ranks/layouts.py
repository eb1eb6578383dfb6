"""Tasks of ranks in the tests of sharded steps."""

from __future__ import annotations

import copy
import pickle
import warnings
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn.parallel import DistributedDataParallel

from hvadam import GradientMeter, HVAdam
from hvadam.torch import states
from ranks import training


def with_given_gradients(
    kernel: Any, sharded: bool, dtype: torch.dtype = torch.float32, **options: Any
) -> list[Tensor]:
    """Return parameters and state after 30 steps with gradients that do not depend on them."""
    torch.manual_seed(0)
    shapes = [(64, 9), (33,), (7, 5, 3), (1,), ()]
    values = [torch.randn(shape, dtype=dtype) for shape in shapes]
    params = [nn.Parameter(x.clone()) for x in values]
    if sharded:
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        params = [
            nn.Parameter(distribute_tensor(x, mesh, [Shard(0)]) if x.ndim else x) for x in values
        ]
    optimizer = HVAdam(params, lr=0.01, kernel=kernel, **options)
    for _ in range(30):
        for p in params:
            g = torch.randn(p.shape, dtype=dtype) + 0.5
            if isinstance(p, DTensor):
                g = distribute_tensor(g, p.device_mesh, p.placements)
            p.grad = g
        optimizer.step()
    state = [optimizer.state[p][key] for p in params for key in ("exp_avg", "hidden")]
    return [training.whole(x) for x in (*params, *state)]


def one_teacher_forced_step(sharded: bool) -> list[Tensor]:
    """Return parameters and state after a native step from a given state."""
    torch.manual_seed(0)
    shapes = [(640, 9), (33,), (7, 5, 3)]
    mesh = init_device_mesh("cpu", (dist.get_world_size(),)) if sharded else None

    def place(x: Tensor) -> Tensor:
        return x if mesh is None else distribute_tensor(x, mesh, [Shard(0)])

    params = [nn.Parameter(place(torch.randn(shape))) for shape in shapes]
    optimizer = HVAdam(params, lr=0.01, kernel="native" if mesh is None else "auto")
    trend = [torch.randn(shape) for shape in shapes]
    for p, direction in zip(params, trend, strict=True):
        state = optimizer.state[p] = states.initial(p, optimizer.param_groups[0])
        state["step"].fill_(100)
        state["exp_avg"].copy_(place(direction))
        state["hidden"].copy_(place(0.9 * direction + 0.1 * torch.randn_like(direction)))
        state["exp_avg_var"].copy_(place(torch.rand_like(direction)))
        p.grad = place(direction + torch.randn_like(direction))
    optimizer.param_groups[0]["scalars"][:3] = torch.tensor([100.0, 50.0, 0.03])
    optimizer.step()
    state = [optimizer.state[p][key] for p in params for key in ("exp_avg", "hidden")]
    return [training.whole(x) for x in (*params, *state)]


def zero_redundancy(options: dict[str, Any]) -> dict[str, Tensor]:
    """Train under DDP with optimizer states dealt out over the ranks."""
    from torch.distributed.optim import ZeroRedundancyOptimizer  # warns of torch.jit when loaded

    model = DistributedDataParallel(training.make_model())

    build: Any = partial(HVAdam, shard_group=dist.group.WORLD)
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=build, lr=0.02, **options
    )
    _train(model, optimizer)
    optimizer.consolidate_state_dict(to=0)
    if dist.get_rank() == 0:
        pickle.dumps(optimizer.state_dict())
    return {name.removeprefix("module."): training.whole(p) for name, p in model.named_parameters()}


def fsdp1(options: dict[str, Any]) -> dict[str, Tensor]:
    """Train in flat pieces that start and end inside tensors, some of them empty."""
    model = FullyShardedDataParallel(
        training.make_model(), use_orig_params=True, device_id=torch.device("cpu")
    )
    optimizer = HVAdam(model.parameters(), lr=0.02, shard_group=dist.group.WORLD, **options)
    _train(model, optimizer)
    with FullyShardedDataParallel.summon_full_params(model):
        return {
            name.removeprefix("_fsdp_wrapped_module."): training.whole(p)
            for name, p in model.named_parameters()
        }


class Stage(nn.Module):
    """A stage of a pipeline: some layers of the model."""

    def __init__(self, model: training.Model, names: tuple[str, ...]) -> None:
        super().__init__()
        self.layers = nn.ModuleDict({name: getattr(model, name) for name in names})

    def forward(self, x: Tensor) -> Tensor:
        """Return the features after these layers."""
        for name, layer in self.layers.items():
            x = layer(x) if name == "last" else torch.tanh(layer(x))
        return x


def pipeline(options: dict[str, Any], sharded: bool = False) -> dict[str, Tensor]:
    """Train two stages, each on one rank or sharded over half of them; shard_group spans all."""
    stages = (("first", "second"), ("third", "last"))
    mesh = init_device_mesh(
        "cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("stage", "shard")
    )
    number, share = mesh.get_local_rank("stage"), mesh.get_local_rank("shard")
    module: nn.Module = Stage(training.make_model(), stages[number])
    if sharded:
        fully_shard(module, mesh=mesh["shard"])
    stage = PipelineStage(module, number, 2, torch.device("cpu"), group=mesh["stage"].get_group())
    schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=nn.functional.mse_loss)
    optimizer = HVAdam(module.parameters(), lr=0.02, shard_group=dist.group.WORLD, **options)
    for step in range(50):
        optimizer.zero_grad()
        x, y = (t.chunk(mesh["shard"].size())[share] for t in training.batch(step))
        if number == 0:
            schedule.step(x)
        else:
            schedule.step(target=y)
        with CommDebugMode() as counter:
            optimizer.step()
        agreed = step > 0  # the first step also compares layouts
        assert not agreed or counter.get_total_counts() == 1 + ("max_grad_norm" in options)
    own = {name.removeprefix("layers."): training.whole(p) for name, p in module.named_parameters()}
    every: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(every, own)
    return every[0] | every[-1]


def copies_of_a_shard_group() -> tuple[bool, bool, list[str], str]:
    """Copy an optimizer: deepcopy shares its group, pickle drops it with a word."""
    w = nn.Parameter(torch.ones(3))
    optimizer = HVAdam([w], shard_group=dist.group.WORLD)
    w.grad = torch.ones(3)
    optimizer.step()
    shared = copy.deepcopy(optimizer).shard_group is dist.group.WORLD
    kept_out = "shard_group" not in str(optimizer.state_dict())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = pickle.loads(pickle.dumps(optimizer))
    try:
        loaded.step()
    except RuntimeError as error:
        refused = str(error)
    else:
        refused = ""
    loaded.shard_group = dist.group.WORLD
    loaded.param_groups[0]["params"][0].grad = torch.ones(3)
    loaded.step()
    return shared, kept_out, [str(warning.message) for warning in caught], refused


def diagnostics_on_one_rank() -> dict[str, dict[str, float]] | None:
    """Ask for diagnostics on rank 0 alone, which is what a logger does."""
    model, _, _ = training.lay_out(training.make_model(), "fsdp2")
    optimizer = HVAdam(model.parameters(), lr=0.02)
    _train(model, optimizer, steps=3)
    found = optimizer.diagnostics() if dist.get_rank() == 0 else None
    dist.barrier()
    return found


def disagreeing_layouts(what: str) -> None:
    """Step with something on rank 1 that differs from the other ranks."""
    odd = dist.get_rank() == 1
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    rows = 6 if odd and what == "shape" else 8
    params = [
        nn.Parameter(distribute_tensor(torch.ones(n, 2), mesh, [Shard(0)], src_data_rank=None))
        for n in (4, rows, *([4] if odd and what == "count" else []))
    ]
    if odd and what == "partial":
        params[0] = nn.Parameter(DTensor.from_local(torch.ones(4, 2), mesh, [Partial()]))
    options: dict[str, Any] = {
        "scope": "group" if odd and what == "scope" else "global",
        "betas": (0.9, 0.99 if odd and what == "betas" else 0.999),
    }
    if what == "shard_group":
        pairs = [dist.new_group([0, 1]), dist.new_group([2])]
        options["shard_group"] = pairs[dist.get_rank() // 2]
    optimizer = HVAdam(params, **options)
    if odd and what == "checkpoint":
        optimizer.param_groups[0]["scalars"][0] = 7
    for p in params:
        p.grad = torch.ones_like(p)
    optimizer.step()


def one_rank_without_gradients() -> list[Tensor]:
    """Step disjoint pieces of which one rank has no gradient once: all move on."""
    w = nn.Parameter(torch.full((2,), 1.0 + dist.get_rank(), dtype=torch.float64))
    optimizer = HVAdam([w], lr=0.1, shard_group=dist.group.WORLD)
    for step in range(4):
        w.grad = torch.tensor([1.0, 2.0 + dist.get_rank()], dtype=torch.float64)
        if step == 1 and dist.get_rank() == 1:
            w.grad = None
        optimizer.step()
    scalars = optimizer.param_groups[0]["scalars"]
    return [w.detach().clone(), scalars.clone()]


def inf_on_one_rank(layout: str) -> tuple[bool, float, float]:
    """Return whether a step under a GradScaler changed anything, and both scales."""
    options: dict[str, Any] = {}
    if layout == "fsdp2":
        model, _, _ = training.lay_out(training.make_model(), "fsdp2")
        params = list(model.parameters())
    elif layout == "replicated and sharded":  # torch tells of what it finds in the first kind only
        mesh, whole = init_device_mesh("cpu", (dist.get_world_size(),)), torch.ones(4)
        kinds = (Replicate(), Shard(0))
        params = [nn.Parameter(distribute_tensor(whole, mesh, [kind])) for kind in kinds]
    else:
        params = [nn.Parameter(torch.ones(4, dtype=torch.float64))]
        options["shard_group"] = dist.group.WORLD
    optimizer = HVAdam(params, lr=0.1, max_grad_norm=1.0, **options)
    assert optimizer._step_supports_amp_scaling == (layout != "fsdp2")
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)

    def fill(value: float) -> None:
        for p in params:
            p.grad = torch.full_like(p, value)

    scaler.scale(torch.ones(()))
    fill(64.0)
    scaler.step(optimizer)
    scaler.update()
    before = [training.whole(x) for x in _all_of(optimizer)]
    scale = scaler.get_scale()
    fill(64.0)
    grad: Any = params[0 if layout == "fsdp2" else -1].grad
    part = grad.to_local() if isinstance(grad, DTensor) else grad
    if dist.get_rank() == 1:
        part[..., 0] = torch.inf
    scaler.step(optimizer)
    after = [training.whole(x) for x in _all_of(optimizer)]
    scaler.update()
    changed = any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
    return changed, scale, scaler.get_scale()


def collectives_under_a_scaler(layout: str) -> tuple[int, int]:
    """Return how often a step communicates under a GradScaler, and without one."""
    model, _, _ = training.lay_out(training.make_model(), layout)
    optimizer: Any = HVAdam(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    scaler.scale(torch.ones(()))
    counts: list[int] = []
    for scaled in (False, True, False):
        for p in model.parameters():
            p.grad = torch.full_like(p, 64.0)
        if scaled:  # torch's own exchange of found_inf is left out of the count
            optimizer.grad_scale = scaler._scale
            optimizer.found_inf = torch.zeros(())
        with CommDebugMode() as counter:
            optimizer.step()
        counts.append(counter.get_total_counts())
        if scaled:
            del optimizer.grad_scale, optimizer.found_inf
    return counts[1], counts[2]


def low_bit_state(state_dtype: Any) -> tuple[float, float]:
    """Return the first and the last loss of a sharded training with low-bit state."""
    torch.manual_seed(0)
    model = training.make_model(torch.float32)
    running, share, shares = training.lay_out(model, "fsdp2")
    optimizer = HVAdam(running.parameters(), lr=0.02, state_dtype=state_dtype)
    losses: list[float] = []
    for step in range(60):
        optimizer.zero_grad()
        x, y = (t.chunk(shares)[share] for t in training.batch(step % 4, torch.float32))
        loss = nn.functional.mse_loss(running(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses[:4]), sum(losses[-4:])


def _all_of(optimizer: HVAdam) -> list[Tensor]:
    held = [x for state in optimizer.state.values() for x in state.values()]
    return [*(p for group in optimizer.param_groups for p in group["params"]), *held]


def _train(model: nn.Module, optimizer: Any, steps: int = 50) -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    for step in range(steps):
        optimizer.zero_grad()
        x, y = (t.chunk(world)[rank] for t in training.batch(step))
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def metered(layout: str | None) -> tuple[dict[str, float], int]:
    """Return what a meter reads in a training, and the collectives of its last update."""
    model = training.make_model()
    runs: tuple[nn.Module, int, int] = (model, 0, 1)
    if layout is not None:
        runs = training.lay_out(model, layout)
    running, share, shares = runs
    optimizer = torch.optim.SGD(running.parameters(), lr=0.1)
    meter = GradientMeter(running.parameters(), state_dtype=torch.float64)
    communicated = 0
    for step in range(20):
        optimizer.zero_grad()
        x, y = (t.chunk(shares)[share] for t in training.batch(step))
        nn.functional.mse_loss(running(x), y).backward()
        with CommDebugMode() as counter:
            meter.update()
        communicated = counter.get_total_counts()
        optimizer.step()
    return meter.read(), communicated
