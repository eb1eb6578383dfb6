"""The trainers' own clipping, in every precision that they have on a CPU.

This file is also the program that the tests run.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from hvadam import HVAdam

CLIP, STEPS, BATCH = 0.05, 12, 4

Run = Callable[[str, float | None, float | None], nn.Module]


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["lightning", "fabric", "transformers", "accelerate"])
def test_a_trainer_clips_in_every_precision(
    trainer: str, launch: Callable[..., str], tmp_path: Path
) -> None:
    """What a trainer clips to is what HVAdam clips to inside the step, and not the rest."""
    pytest.importorskip("lightning" if trainer == "fabric" else trainer)
    launch(Path(__file__), trainer, tmp_path / "found.pt")
    found = torch.load(tmp_path / "found.pt", weights_only=True)
    assert [*found] == [*TRAINERS[trainer][1]]
    for precision, (by_trainer, by_step, unclipped) in found.items():
        moved = (by_trainer - unclipped).norm()
        assert moved > 0, precision
        # bfloat16 gradients are rounded once more where they are clipped outside.
        assert (by_trainer - by_step).norm() < (0.2 if "true" in precision else 1e-3) * moved


@pytest.mark.slow
def test_accelerate_tells_of_a_skipped_step() -> None:
    """So that its schedulers wait, as they do with AdamW."""
    pytest.importorskip("accelerate")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs are theirs
        from accelerate import Accelerator
        from accelerate.optimizer import AcceleratedOptimizer

        Accelerator(cpu=True)
    w = nn.Parameter(torch.ones(3))
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    optimizer: Any = AcceleratedOptimizer(HVAdam([w]), scaler=scaler)
    skipped = []
    for factor in (1.0, torch.inf, 1.0):
        optimizer.zero_grad()
        scaler.scale(factor * w.sum()).backward()
        optimizer.step()
        skipped.append(optimizer.step_was_skipped)
    assert skipped == [False, True, False]


class Model(nn.Module):
    """A network with its loss, in the form that transformers takes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        dtype = next(self.parameters()).dtype
        return {"loss": nn.functional.mse_loss(self.network(x.to(dtype)).float(), y)}


class Rows(Dataset[dict[str, Tensor]]):
    """Rows whose gradients differ by orders, as Adam would not see a norm that is always one."""

    def __len__(self) -> int:
        return STEPS * BATCH

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        if i >= len(self):
            raise IndexError(i)
        x = torch.randn(4, generator=torch.Generator().manual_seed(i))
        return {"x": x, "y": 10.0 ** (i // BATCH % 3) * x.sum(0, keepdim=True)}


def loader() -> DataLoader[Any]:
    return DataLoader(Rows(), batch_size=BATCH)


def chosen(precision: str, mixed: Any) -> dict[str, Any]:
    """Return Lightning's options for a precision; by name it makes float16 bfloat16 on a CPU."""
    if precision != "16-mixed":
        return {"precision": precision}
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**6)
    return {"plugins": mixed("16-mixed", "cpu", scaler)}


def with_lightning(precision: str, clip: float | None, max_grad_norm: float | None) -> nn.Module:
    import lightning as L
    from lightning.pytorch.plugins import MixedPrecision

    class Module(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Model()

        def training_step(self, batch: dict[str, Tensor]) -> Tensor:
            return self.model(**batch)["loss"]

        def configure_optimizers(self) -> HVAdam:
            return HVAdam(self.parameters(), lr=0.01, max_grad_norm=max_grad_norm)

    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        gradient_clip_val=clip,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        **chosen(precision, MixedPrecision),
    )
    module = Module()
    trainer.fit(module, loader())
    return module.model


def with_fabric(precision: str, clip: float | None, max_grad_norm: float | None) -> nn.Module:
    from lightning.fabric import Fabric
    from lightning.fabric.plugins import MixedPrecision

    fabric = Fabric(accelerator="cpu", **chosen(precision, MixedPrecision))
    model = Model()
    running, optimizer = fabric.setup(
        model, HVAdam(model.parameters(), lr=0.01, max_grad_norm=max_grad_norm)
    )
    for batch in loader():
        optimizer.zero_grad()
        fabric.backward(running(**batch)["loss"])
        if clip is not None:
            fabric.clip_gradients(running, optimizer, max_norm=clip, error_if_nonfinite=False)
        optimizer.step()
    return model


def with_transformers(precision: str, clip: float | None, max_grad_norm: float | None) -> nn.Module:
    from transformers import Trainer, TrainingArguments

    model = Model()
    trainer = Trainer(
        model=model,
        optimizer_cls_and_kwargs=(HVAdam, {"lr": 0.01, "max_grad_norm": max_grad_norm}),
        args=TrainingArguments(
            output_dir="unused",
            max_steps=STEPS,
            per_device_train_batch_size=BATCH,
            lr_scheduler_type="constant",
            max_grad_norm=clip or 0.0,
            bf16=precision == "bf16",
            save_strategy="no",
            use_cpu=True,
            dataloader_pin_memory=False,
            report_to="none",
        ),
        train_dataset=Rows(),
    )
    trainer.train()
    return model


def with_accelerate(precision: str, clip: float | None, max_grad_norm: float | None) -> nn.Module:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(True)  # it remembers the last precision
    accelerator = Accelerator(cpu=True, mixed_precision=precision)
    model = Model()
    running, optimizer, batches = accelerator.prepare(
        model, HVAdam(model.parameters(), lr=0.01, max_grad_norm=max_grad_norm), loader()
    )
    for batch in batches:
        optimizer.zero_grad()
        accelerator.backward(running(**batch)["loss"])
        if clip is not None:
            accelerator.clip_grad_norm_(running.parameters(), clip)
        optimizer.step()
    return model


TRAINERS: dict[str, tuple[Run, tuple[str, ...]]] = {
    "lightning": (with_lightning, ("32-true", "bf16-mixed", "16-mixed", "bf16-true", "64-true")),
    "fabric": (with_fabric, ("32-true", "bf16-mixed", "16-mixed", "bf16-true", "64-true")),
    "transformers": (with_transformers, ("no", "bf16")),
    "accelerate": (with_accelerate, ("no", "bf16")),
}


def main(trainer: str, file: Path) -> None:
    """Train clipped by the trainer, by the step and not at all, and keep all parameters of each."""
    run, precisions = TRAINERS[trainer]
    found: dict[str, list[Tensor]] = {}
    for precision in precisions:
        for clip, max_grad_norm in ((CLIP, None), (None, CLIP), (None, None)):
            model = run(precision, clip, max_grad_norm)
            parts = [p.detach().double().reshape(-1) for p in model.parameters()]
            found.setdefault(precision, []).append(torch.cat(parts))
    torch.save(found, file)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
