"""HVAdam with Accelerate on two ranks. This file is also the program that they run."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset

from hvadam import HVAdam

pytestmark = pytest.mark.slow
STEPS, HALF = 30, 15
BATCH = 16  # over both ranks; two of them make one step


@pytest.mark.parametrize("ranks", [None, 2])
def test_the_page_runs(
    ranks: int | None, program: Callable[[str], Path], launch: Callable[..., str]
) -> None:
    pytest.importorskip("accelerate")
    output = launch(program("accelerate.md"), ranks=ranks)
    losses = [float(x) for x in re.findall(r"loss ([\d.]+)", output)]
    assert len(losses) == 8
    assert losses[-1] < losses[0] / 4


def test_two_ranks_do_what_one_does_and_resume(
    launch: Callable[..., str], tmp_path: Path, assert_same: Callable[[Any, Any], None]
) -> None:
    pytest.importorskip("accelerate")
    launch(Path(__file__), tmp_path / "straight", 0, STEPS, ranks=2)
    launch(Path(__file__), tmp_path / "stopped", 0, HALF, ranks=2)
    launch(Path(__file__), tmp_path / "stopped", HALF, STEPS, ranks=2)
    straight, other, resumed = (
        torch.load(tmp_path / name, weights_only=True)
        for name in ("straight/rank0.pt", "straight/rank1.pt", "stopped/rank0.pt")
    )
    assert_same(straight, other)
    assert_same(straight, resumed)

    model, optimizer, scheduler = build()
    losses = []
    for x, y in DataLoader(data(), batch_size=2 * BATCH):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4
    # In float64 only the order of sums over the batch differs.
    for key, value in model.state_dict().items():
        torch.testing.assert_close(straight["model"][key], value, rtol=1e-10, atol=1e-12)
    for group, mine in zip(
        straight["optimizer"]["param_groups"], optimizer.param_groups, strict=True
    ):
        torch.testing.assert_close(group["scalars"], mine["scalars"], rtol=1e-9, atol=1e-12)
        assert group["lr"] == pytest.approx(mine["lr"])


def build() -> tuple[nn.Module, HVAdam, ExponentialLR]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)).double()
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.ndim < 2]},
    ]
    optimizer = HVAdam(groups, lr=3e-2, max_grad_norm=1.0)
    return model, optimizer, ExponentialLR(optimizer, gamma=0.99)


def data() -> TensorDataset:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2 * BATCH * STEPS, 4, generator=generator, dtype=torch.float64)
    return TensorDataset(x, x.sum(1, keepdim=True))


def main(folder: Path, first: int, last: int) -> None:
    """Train on this rank's share of the batches from one step to another."""
    from accelerate import Accelerator, DataLoaderConfiguration

    accelerator = Accelerator(
        cpu=True,
        gradient_accumulation_steps=2,
        dataloader_config=DataLoaderConfiguration(split_batches=True),
    )
    assert accelerator.num_processes == 2
    model, optimizer, scheduler, loader = accelerator.prepare(
        *build(), DataLoader(data(), batch_size=BATCH)
    )
    if first:
        accelerator.load_state(str(folder / "state"))
        loader = accelerator.skip_first_batches(loader, 2 * first)
    batch: tuple[Tensor, Tensor]
    for i, batch in enumerate(loader):
        if i == 2 * (last - first):
            break
        with accelerator.accumulate(model):
            accelerator.backward(nn.functional.mse_loss(model(batch[0]), batch[1]))
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()  # does nothing until the step is taken, so it comes last
    accelerator.save_state(str(folder / "state"))
    outcome = {
        "model": accelerator.unwrap_model(model).state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    torch.save(outcome, folder / f"rank{accelerator.process_index}.pt")
    accelerator.end_training()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
