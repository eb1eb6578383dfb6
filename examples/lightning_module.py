"""A LightningModule that trains with HVAdam and a learning rate schedule.

    python examples/lightning_module.py
    python examples/lightning_module.py --devices 2

With ``--checkpoint DIR`` it saves there after every epoch, and the same command resumes a run that
was stopped.
"""

import argparse
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from hvadam import HVAdam

BATCH = 32
BATCHES = 10  # in an epoch, over all processes
LOG_EVERY = 5


class Classifier(L.LightningModule):
    """Points in the plane, by whether they lie in a circle."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.network = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, 2)

    def training_step(self, batch: tuple[Tensor, Tensor], _: int) -> Tensor:
        points, labels = batch
        loss = nn.functional.cross_entropy(self.head(self.network(points)), labels)
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def configure_optimizers(self) -> Any:
        # One optimizer with two groups, which share one hidden vector. Two optimizers would each
        # look for a trend of their own, and Lightning would want manual optimization.
        decayed = [p for p in self.parameters() if p.ndim >= 2]
        others = [p for p in self.parameters() if p.ndim < 2]
        optimizer = HVAdam(
            [{"params": decayed, "weight_decay": 0.01}, {"params": others}],
            lr=1e-2,
            max_grad_norm=1.0,  # so Trainer is given no gradient_clip_val
        )
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.steps)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": scheduler, "interval": "step"},
        }

    def on_train_batch_end(self, *_: Any) -> None:
        if self.global_step % LOG_EVERY == 0:
            optimizer = self.optimizers(use_pl_optimizer=False)
            assert isinstance(optimizer, HVAdam)
            found = optimizer.diagnostics()["global"]
            names = ("alignment", "hidden_gain", "restarts")
            self.log_dict({f"hvadam/{name}": found[name] for name in names})


class PrintEpoch(Callback):
    """One line an epoch; a logger would get the same numbers."""

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if trainer.is_global_zero:
            numbers = {name: f"{float(x):.4f}" for name, x in trainer.callback_metrics.items()}
            text = "  ".join(f"{name} {number}" for name, number in sorted(numbers.items()))
            print(f"epoch {trainer.current_epoch + 1:3d}  {text}", flush=True)


def data() -> DataLoader[tuple[Tensor, ...]]:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(BATCH * BATCHES, 2, generator=generator)
    labels = (points.norm(dim=1) < 1.2).long()
    # In order, as it is random already: Lightning does not restore the order of a shuffled loader.
    return DataLoader(TensorDataset(points, labels), batch_size=BATCH)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train with HVAdam and Lightning.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument(
        "--devices", type=int, default=1, help="processes, or GPUs if there are any"
    )
    parser.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="save here, resume from here"
    )
    args = parser.parse_args()
    L.seed_everything(0)
    trainer, last = build_trainer(args.epochs, args.devices, args.checkpoint)
    module = Classifier(steps=args.epochs * BATCHES // args.devices)
    trainer.fit(module, data(), ckpt_path=last)


def build_trainer(
    epochs: int, devices: int, directory: Path | None
) -> tuple[L.Trainer, str | None]:
    """A Trainer, and the checkpoint to resume from, if there is one."""
    callbacks: list[Callback] = [PrintEpoch()]
    if directory:
        callbacks.append(ModelCheckpoint(directory, save_last=True, save_top_k=0))
    trainer = L.Trainer(
        max_epochs=epochs,
        accelerator="auto",
        devices=devices,
        strategy="ddp" if devices > 1 else "auto",
        log_every_n_steps=LOG_EVERY,
        callbacks=callbacks,
        enable_checkpointing=directory is not None,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    last = directory / "last.ckpt" if directory else None
    return trainer, str(last) if last and last.exists() else None


if __name__ == "__main__":
    main()
