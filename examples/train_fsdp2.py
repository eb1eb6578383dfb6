"""Train a small transformer with HVAdam, its parameters sharded over all processes (FSDP2).

    torchrun --standalone --nproc-per-node 2 examples/train_fsdp2.py

runs on two CPU processes, or on as many GPUs as ``--nproc-per-node`` says. With ``--checkpoint
DIR`` it saves there, and the same command resumes a run that was stopped, on more or fewer
processes if you like. On several machines DIR must be one that all of them see.
"""

import argparse
import os
import shutil
from pathlib import Path

import tiny_lm
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from hvadam import HVAdam

BATCH = 32  # windows over all processes, whose number should divide it
SAVE_EVERY = 20
LOG_EVERY = 10


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small transformer with HVAdam and FSDP2.")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="save here, resume from here"
    )
    args = parser.parse_args()

    # torchrun tells each process who it is through the environment.
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    try:
        train(args.steps, args.checkpoint, device)
    finally:
        dist.destroy_process_group()


def train(steps: int, directory: Path | None, device: torch.device) -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)  # the same initial parameters everywhere, before they are sharded
    model = tiny_lm.TinyLM().to(device)
    mesh = init_device_mesh(device.type, (world,))
    for block in model.blocks:  # each is gathered, used and freed in turn
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)  # what is left: embeddings, last norm and head

    # After sharding, since that replaces the parameters. One optimizer for all of them: groups may
    # differ in decay or learning rate, but share one hidden vector. Its few scalars need sums over
    # all shards, which HVAdam makes with one small all-reduce a step.
    optimizer = HVAdam(tiny_lm.param_groups(model), lr=3e-3, max_grad_norm=0.5)

    first = load(directory, model, optimizer)
    for step in range(first, steps):
        for group in optimizer.param_groups:  # a warm-up that needs no state of its own
            group["lr"] = 3e-3 * min(1, (step + 1) / 10)
        optimizer.zero_grad()
        loss = model(tiny_lm.batch(step, BATCH, rank, world).to(device))
        loss.backward()
        optimizer.step()

        done = step + 1
        if done % LOG_EVERY == 0 or step == first:
            log(done, loss.detach(), optimizer)
        if directory and (done % SAVE_EVERY == 0 or done == steps):
            save(directory, done, model, optimizer)


def log(done: int, loss: torch.Tensor, optimizer: HVAdam) -> None:
    """Print the mean loss over all processes and what the hidden vector does, once."""
    dist.all_reduce(loss)
    if dist.get_rank() == 0:
        hidden = optimizer.diagnostics()["global"]
        print(
            f"step {done:4d}  loss {loss.item() / dist.get_world_size():.4f}  "
            f"alignment {hidden['alignment']:.4f}  restarts {hidden['restarts']:.0f}",
            flush=True,
        )


def save(directory: Path, done: int, model: torch.nn.Module, optimizer: HVAdam) -> None:
    """Each process writes its shards; a checkpoint gets the name that load looks for when whole."""
    partial, whole = directory / "partial", directory / f"step-{done:08d}"
    if dist.get_rank() == 0:
        shutil.rmtree(partial, ignore_errors=True)  # of a run that died while saving
        directory.mkdir(parents=True, exist_ok=True)
    dist.barrier()
    parameters, state = get_state_dict(model, optimizer)
    dcp.save({"model": parameters, "optimizer": state, "step": done}, checkpoint_id=partial)
    if dist.get_rank() == 0:  # dcp.save returns when all have written
        partial.replace(whole)
        for old in sorted(directory.glob("step-*"))[:-2]:
            shutil.rmtree(old)
    dist.barrier()


def load(directory: Path | None, model: torch.nn.Module, optimizer: HVAdam) -> int:
    """Resume from the newest checkpoint, if there is one; the step to go on with."""
    found = sorted(directory.glob("step-*")) if directory else []
    if not found:
        return 0
    parameters, state = get_state_dict(model, optimizer)  # tells dcp what goes where
    loaded = {"model": parameters, "optimizer": state, "step": 0}
    dcp.load(loaded, checkpoint_id=found[-1])
    set_state_dict(model, optimizer, model_state_dict=parameters, optim_state_dict=state)
    return loaded["step"]


if __name__ == "__main__":
    main()
