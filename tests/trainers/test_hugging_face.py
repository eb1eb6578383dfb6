"""HVAdam in Hugging Face's Trainer. This file is also the program that the ranks run."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hvadam import HVAdam

pytestmark = pytest.mark.slow
STEPS, HALF = 24, 12


def test_the_page_runs(program: Callable[[str], Path], launch: Callable[..., str]) -> None:
    pytest.importorskip("transformers")
    output = launch(program("hugging-face.md"))
    losses = [float(x) for x in re.findall(r"'loss': '([\d.e-]+)'", output)]
    assert losses[-1] < losses[0] / 4
    assert "'steps_since_restart'" in output


def test_resumes_bit_for_bit(
    launch: Callable[..., str], tmp_path: Path, assert_same: Callable[[Any, Any], None]
) -> None:
    pytest.importorskip("transformers")
    straight, resumed = tmp_path / "straight", tmp_path / "resumed"
    launch(Path(__file__), straight)
    resumed.mkdir()
    (straight / f"checkpoint-{HALF}").rename(resumed / f"checkpoint-{HALF}")
    launch(Path(__file__), resumed)
    outcome = [outcome_of(folder, 0) for folder in (straight, resumed)]
    assert outcome[0]["losses"][-1] < outcome[0]["losses"][0] / 2
    assert outcome[1].pop("losses") == outcome[0].pop("losses")[HALF:]
    assert_same(*outcome)
    decays = [group["weight_decay"] for group in outcome[0]["optimizer"]["param_groups"]]
    assert decays == [0.01, 0.0]


def test_two_ranks_do_what_one_does(
    launch: Callable[..., str], tmp_path: Path, assert_same: Callable[[Any, Any], None]
) -> None:
    pytest.importorskip("transformers")
    launch(Path(__file__), tmp_path / "one")
    launch(Path(__file__), tmp_path / "two", ranks=2)
    one, two, other = (
        outcome_of(tmp_path / folder, rank) for folder, rank in (("one", 0), ("two", 0), ("two", 1))
    )
    assert_same(two["model"], other["model"])
    assert_same(two["optimizer"], other["optimizer"])
    # In float64 only the order of sums over the batch differs.
    for key in ("model", "scalars"):
        torch.testing.assert_close(two[key], one[key], rtol=1e-9, atol=1e-11)


def outcome_of(folder: Path, rank: int) -> dict[str, Any]:
    return torch.load(folder / f"rank{rank}.pt", weights_only=True)


def main(folder: Path) -> None:
    """Train a tiny Llama in float64, from the folder's checkpoint if it has one."""
    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
    from transformers.trainer_utils import get_last_checkpoint

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        hidden_size=16,
        intermediate_size=32,
    )
    model = LlamaForCausalLM(config).double()
    rows = (torch.arange(256)[:, None] + torch.arange(16)) % 16
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    trainer = Trainer(
        model=model,
        optimizer_cls_and_kwargs=(HVAdam, {"lr": 1e-2}),
        args=TrainingArguments(
            output_dir=str(folder),
            max_steps=STEPS,
            per_device_train_batch_size=16 // ranks,
            weight_decay=0.01,
            lr_scheduler_type="cosine",
            warmup_steps=2,
            logging_steps=1,
            save_steps=HALF,
            use_cpu=True,
            dataloader_pin_memory=False,
            ddp_find_unused_parameters=False,
            report_to="none",
        ),
        train_dataset=[{"input_ids": row, "labels": row} for row in rows],  # pyright: ignore[reportArgumentType]
    )
    found = get_last_checkpoint(str(folder)) if folder.is_dir() else None
    trainer.train(resume_from_checkpoint=found)
    first = HALF if found else 0
    optimizer = trainer.optimizer.optimizer  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
    assert isinstance(optimizer, HVAdam)
    outcome = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scalars": optimizer.param_groups[1]["scalars"],
        "losses": [row["loss"] for row in trainer.state.log_history if "loss" in row][first:],
    }
    torch.save(outcome, folder / f"rank{trainer.args.process_index}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
