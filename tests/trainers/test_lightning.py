"""HVAdam in Lightning, with the module of the example. This file is also what the ranks run."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EXAMPLES = Path(__file__).parents[2] / "examples"
EPOCHS, HALF = 6, 3

pytestmark = pytest.mark.slow


def test_the_page_runs(program: Callable[[str], Path], launch: Callable[..., str]) -> None:
    pytest.importorskip("lightning")
    output = launch(program("lightning.md"))
    losses = [float(x) for x in re.findall(r"loss ([\d.]+)", output)]
    assert len(losses) == 8
    assert losses[-1] < losses[0] / 4


def test_two_ranks_do_what_one_does_and_resume(
    launch: Callable[..., str], tmp_path: Path, assert_same: Callable[[Any, Any], None]
) -> None:
    pytest.importorskip("lightning")
    launch(Path(__file__), tmp_path / "one", 1, EPOCHS)
    launch(Path(__file__), tmp_path / "two", 2, EPOCHS, ranks=2)
    launch(Path(__file__), tmp_path / "stopped", 1, HALF)
    launch(Path(__file__), tmp_path / "stopped", 1, EPOCHS)
    one, two, resumed = (
        torch.load(tmp_path / name / "last.ckpt", weights_only=True)
        for name in ("one", "two", "stopped")
    )
    for key in ("state_dict", "optimizer_states", "lr_schedulers"):
        assert_same(one[key], resumed[key])

    assert one["global_step"] == two["global_step"] == EPOCHS * 5
    # In float64 only the order of sums over the batch differs.
    for key, value in one["state_dict"].items():
        torch.testing.assert_close(two["state_dict"][key], value, rtol=1e-9, atol=1e-12)
    for group, mine in zip(
        two["optimizer_states"][0]["param_groups"],
        one["optimizer_states"][0]["param_groups"],
        strict=True,
    ):
        torch.testing.assert_close(group["scalars"], mine["scalars"], rtol=1e-8, atol=1e-12)


def main(folder: Path, devices: int, epochs: int) -> None:
    """Train the example's module in float64, from the folder's checkpoint if it has one."""
    sys.path.insert(0, str(EXAMPLES))
    import lightning as L
    from lightning.pytorch.callbacks import ModelCheckpoint
    from lightning_module import Classifier, data  # pyright: ignore[reportMissingImports]

    L.seed_everything(0)
    # In float64 before fit: Lightning loads a checkpoint first and sets the precision later.
    module = Classifier(steps=EPOCHS * 5).double()
    points, labels = data().dataset.tensors
    dataset = TensorDataset(points.double(), labels)
    trainer = L.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        devices=devices,
        strategy="ddp" if devices > 1 else "auto",
        precision="64-true",
        callbacks=[ModelCheckpoint(folder, save_last=True, save_top_k=0)],
        use_distributed_sampler=False,  # it would shuffle
        log_every_n_steps=1,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    last = folder / "last.ckpt"
    rank = int(os.environ.get("RANK", "0"))
    sampler = DistributedSampler(dataset, devices, rank, shuffle=False)
    loader = DataLoader(dataset, batch_size=64 // devices, sampler=sampler)  # 5 steps an epoch
    trainer.fit(module, loader, ckpt_path=str(last) if last.exists() else None)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
