"""Train a small transformer with HVAdam on several processes that each hold the whole model (DDP).

    torchrun --standalone --nproc-per-node 2 examples/train_ddp.py

runs on two CPU processes, or on as many GPUs as ``--nproc-per-node`` says. With ``--checkpoint
DIR`` it saves there, and the same command resumes a run that was stopped.
"""

import argparse
import os
from pathlib import Path

import tiny_lm
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hvadam import HVAdam

BATCH = 32  # windows over all processes, whose number should divide it
SAVE_EVERY = 20
LOG_EVERY = 10


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small transformer with HVAdam and DDP.")
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
    torch.manual_seed(0)
    model = tiny_lm.TinyLM().to(device)

    # DDP averages the gradients during backward. Every process then holds the same ones and HVAdam
    # computes the same scalars everywhere, without communication of its own.
    parallel = DistributedDataParallel(model)

    # One optimizer for all parameters: groups may differ in decay or learning rate, but share one
    # hidden vector. Several optimizers would each look for a trend of their own.
    optimizer = HVAdam(tiny_lm.param_groups(model), lr=3e-3, max_grad_norm=0.5)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / 10))

    first = load(directory, model, optimizer, scheduler, device)
    for step in range(first, steps):
        optimizer.zero_grad()
        loss = parallel(tiny_lm.batch(step, BATCH, rank, world).to(device))
        loss.backward()
        optimizer.step()
        scheduler.step()

        done = step + 1
        if done % LOG_EVERY == 0 or step == first:
            log(done, loss.detach(), optimizer)
        if directory and (done % SAVE_EVERY == 0 or done == steps):
            save(directory, done, model, optimizer, scheduler)


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


def save(directory: Path, done: int, model, optimizer: HVAdam, scheduler) -> None:
    """Write beside the old checkpoint, then replace it: a crash leaves one of them whole."""
    if dist.get_rank() == 0:  # all processes hold the same
        directory.mkdir(parents=True, exist_ok=True)
        partial = directory / "checkpoint.partial"
        state = {
            "step": done,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
        }
        torch.save(state, partial)
        partial.replace(directory / "checkpoint.pt")


def load(directory: Path | None, model, optimizer: HVAdam, scheduler, device) -> int:
    """Resume if there is a checkpoint; the step to go on with."""
    path = directory / "checkpoint.pt" if directory else None
    if path is None or not path.exists():
        return 0
    state = torch.load(path, map_location=device, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    return state["step"]


if __name__ == "__main__":
    main()
