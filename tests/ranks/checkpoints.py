"""Tasks of ranks in the tests of checkpoints."""

from __future__ import annotations

import copy
import os
import signal
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    get_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from torch.distributed.tensor import DTensor, distribute_tensor

from hvadam import HVAdam, warm_start
from ranks import training


def job(
    folder: Path, steps: int, die_at: int | None, options: dict[str, Any], flatten: bool
) -> None:
    """Train from the last checkpoint, saving every 5 steps; rank 1 may be killed on the way."""
    how = StateDictOptions(flatten_optimizer_state_dict=flatten)
    model, optimizer, share, shares = _build(options)
    latest = folder / "latest"
    begin = int(latest.read_text()) if latest.exists() else 0
    if begin:
        model_state, state = get_state_dict(model, optimizer, options=how)
        dcp.load({"model": model_state, "optimizer": state}, checkpoint_id=folder / str(begin))
        set_state_dict(
            model, optimizer, model_state_dict=model_state, optim_state_dict=state, options=how
        )
    for step in range(begin, steps):
        if step == die_at and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        _step(model, optimizer, step, share, shares)
        if step % 5 == 4:
            model_state, state = get_state_dict(model, optimizer, options=how)
            dcp.save(
                {"model": model_state, "optimizer": state}, checkpoint_id=folder / str(step + 1)
            )
            if dist.get_rank() == 0:
                latest.write_text(str(step + 1))
    params = {name: training.whole(p) for name, p in model.named_parameters()}
    if dist.get_rank() == 0:
        torch.save(params, folder / "final.pt")


def save_and_load(
    folder: Path, options: dict[str, Any], flatten: bool, full: bool
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters after 10 steps, and after 5, a save, a load and 5 more."""
    how = StateDictOptions(
        flatten_optimizer_state_dict=flatten,
        full_state_dict=full,
        cpu_offload=full,
        broadcast_from_rank0=full,
    )
    asked = StateDictOptions(
        flatten_optimizer_state_dict=flatten, full_state_dict=full, cpu_offload=full
    )
    model, optimizer, share, shares = _build(options)
    for step in range(5):
        _step(model, optimizer, step, share, shares)
    values = {name: training.whole(p) for name, p in model.named_parameters()}
    state = copy.deepcopy(get_optimizer_state_dict(model, optimizer, options=asked))
    if not full:
        dcp.save(state, checkpoint_id=folder / "optimizer")
    for step in range(5, 10):
        _step(model, optimizer, step, share, shares)
    uninterrupted = {name: training.whole(p) for name, p in model.named_parameters()}

    model, optimizer, share, shares = _build(options)
    with torch.no_grad():
        for name, p in model.named_parameters():
            assert isinstance(p, DTensor)
            p.copy_(distribute_tensor(values[name], p.device_mesh, p.placements))
    if full:
        state = state if dist.get_rank() == 0 else {}
    else:
        state = get_optimizer_state_dict(model, optimizer, options=asked)
        dcp.load(state, checkpoint_id=folder / "optimizer")
    set_optimizer_state_dict(model, optimizer, state, options=how)
    for step in range(5, 10):
        _step(model, optimizer, step, share, shares)
    return uninterrupted, {name: training.whole(p) for name, p in model.named_parameters()}


def initialisation() -> bool:
    """Return whether asking a fresh sharded optimizer for its state changes what it does."""
    finals: list[dict[str, Tensor]] = []
    for asked in (False, True):
        model, optimizer, share, shares = _build({"weight_decay": 0.1})
        if asked:
            get_optimizer_state_dict(model, optimizer)
        for step in range(5):
            _step(model, optimizer, step, share, shares)
        finals.append({name: training.whole(p) for name, p in model.named_parameters()})
    return any(not torch.equal(finals[0][name], finals[1][name]) for name in finals[0])


def whole_state_into_shards() -> None:
    """Load a state dict of whole tensors into a sharded optimizer, which refuses it."""
    model = training.make_model()
    optimizer = HVAdam(model.parameters())
    _step(model, optimizer, 0, 0, 1)
    sharded, target, _, _ = _build({})
    del sharded
    state = optimizer.state_dict()
    state["param_groups"][0]["params"] = list(range(8))
    target.load_state_dict(state)


def warm_started() -> tuple[float, float]:
    """Return how far AdamW's next step goes, and HVAdam's first, sharded."""
    lengths: list[float] = []
    for kind in ("adamw", "hvadam"):
        model, share, shares = training.lay_out(training.make_model(), "fsdp2")
        adamw: Any = torch.optim.AdamW(model.parameters(), lr=0.01)
        for step in range(30):
            _step(model, adamw, step, share, shares)
        optimizer = adamw
        if kind == "hvadam":
            optimizer = HVAdam(model.parameters(), lr=0.01)
            warm_start(optimizer, adamw)
        before = [training.whole(p) for p in model.parameters()]
        _step(model, optimizer, 30, share, shares)
        moved = [training.whole(p) - old for p, old in zip(model.parameters(), before, strict=True)]
        lengths.append(torch.cat([x.reshape(-1) for x in moved]).norm().item())
    return lengths[0], lengths[1]


def _build(options: dict[str, Any]) -> tuple[nn.Module, HVAdam, int, int]:
    low_bit = options.get("state_dtype") == "bfloat16"
    model = training.make_model(torch.float32 if low_bit else torch.float64)
    running, share, shares = training.lay_out(model, "fsdp2")
    return running, HVAdam(running.parameters(), lr=0.02, **options), share, shares


def _step(model: nn.Module, optimizer: Any, step: int, share: int, shares: int) -> None:
    """Step on the whole batch on all ranks: any world size then does the same."""
    optimizer.zero_grad()
    dtype = next(model.parameters()).dtype
    x, y = training.batch(step, dtype)
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
