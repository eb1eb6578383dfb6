"""The callbacks that measure gradients, as their page shows them, in real trainers."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from snippets import ROOT, python_on
from torch.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "howto" / "measure-gradients.md"


def callback(name: str) -> Any:
    [code] = [one for one in python_on(PAGE) if re.search(rf"^class {name}\b", one, re.MULTILINE)]
    from hvadam import GradientMeter

    space: dict[str, Any] = {"GradientMeter": GradientMeter}
    exec(code, space)
    return space[name]()


def batches() -> DataLoader[Any]:
    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)


@pytest.mark.filterwarnings("ignore")  # of the trainers themselves
def test_in_lightning(tmp_path: Path) -> None:
    import lightning

    class Regression(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch: Any, _: int) -> torch.Tensor:
            return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=1e-2)

    trainer = lightning.Trainer(
        max_epochs=2,
        logger=False,
        accelerator="cpu",
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
        callbacks=[callback("MeasureInLightning")],
        default_root_dir=tmp_path,
    )
    trainer.fit(Regression(), batches())
    logged = trainer.callback_metrics
    assert math.isfinite(logged["gradient_rest_average"])
    assert logged["gradient_readings"] > 5


@pytest.mark.filterwarnings("ignore")  # of the trainers themselves
def test_in_trainer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=16,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    ids = (torch.arange(32)[:, None] + torch.arange(8)) % 16
    trainer = Trainer(
        model=LlamaForCausalLM(config),
        args=TrainingArguments(
            output_dir=str(tmp_path),
            max_steps=6,
            per_device_train_batch_size=8,
            logging_steps=2,
            use_cpu=True,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
        ),
        train_dataset=[{"input_ids": row, "labels": row} for row in ids],
        callbacks=[callback("Measure")],
    )
    trainer.train()
    assert re.search(r"'gradient_rest': '[\d.]+'", capsys.readouterr().out)
