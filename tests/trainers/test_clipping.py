"""The trainers' own clipping, in every precision that they have on a CPU.

This file is also the program that the tests run.
"""

from __future__ import annotations

import copy
import runpy
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


# Mixed precision in plain torch: autocast in bfloat16, and in float16 with a GradScaler.
Same = Callable[[Any, Any], None]


def test_the_page_runs(program: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(program("amp.md")), run_name="__main__")
    losses = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    assert losses[-1] < losses[0] / 4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_learns_and_keeps_full_precision(dtype: torch.dtype) -> None:
    model, optimizer = build()
    losses = [train_step(model, optimizer, step, autocast=dtype) for step in range(100)]
    assert losses[-1] < losses[0] / 4
    for p in model.parameters():
        assert p.dtype == torch.float32
        assert optimizer.state[p]["exp_avg_var"].dtype == torch.float32


@pytest.mark.parametrize("options", [{}, {"max_grad_norm": 0.1}])
def test_a_scaler_changes_nothing_but_the_range(options: dict[str, Any], assert_same: Same) -> None:
    """Scaled by a power of two, no bit of a float32 gradient is lost; HVAdam divides it out."""
    plain, plain_optimizer = build(**options)
    scaled, scaled_optimizer = build(**options)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=7)
    for step in range(20):  # the scale doubles twice on the way
        train_step(plain, plain_optimizer, step)
        train_step(scaled, scaled_optimizer, step, scaler=scaler)
    assert scaler.get_scale() == 2.0**14
    assert_same(scaled.state_dict(), plain.state_dict())
    assert_same(scaled_optimizer.state_dict(), plain_optimizer.state_dict())


def test_unscaling_first_is_the_same_in_float16(assert_same: Same) -> None:
    """A loop that clips by hand calls ``unscale_`` before; then HVAdam must not divide again."""
    outcomes = []
    for unscale_first in (False, True):
        model, optimizer = build()
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)
        for step in range(20):
            train_step(model, optimizer, step, torch.float16, scaler, unscale_first)
        outcomes.append([model.state_dict(), optimizer.state_dict()])
    assert_same(*outcomes)


def test_overflow_skips_the_step_bit_for_bit(assert_same: Same) -> None:
    model, optimizer = build()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)
    for step in range(5):
        train_step(model, optimizer, step, torch.float16, scaler)
    scaler.update(2.0**40)  # float16 ends at 65504
    before = copy.deepcopy([model.state_dict(), optimizer.state_dict()])
    train_step(model, optimizer, 5, torch.float16, scaler)
    assert_same([model.state_dict(), optimizer.state_dict()], before)
    assert scaler.get_scale() == 2.0**39  # as after every overflow
    assert not any(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def build(**options: Any) -> tuple[nn.Module, HVAdam]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    return model, HVAdam(model.parameters(), lr=1e-2, **options)


def train_step(
    model: nn.Module,
    optimizer: HVAdam,
    step: int,
    autocast: torch.dtype | None = None,
    scaler: torch.amp.GradScaler | None = None,
    unscale_first: bool = False,
) -> float:
    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(step))
    scaler = scaler or torch.amp.GradScaler("cpu", enabled=False)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
        output: Tensor = model(x)
        loss = nn.functional.mse_loss(output.float(), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    if unscale_first:
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()
