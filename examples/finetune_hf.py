"""Fine-tune a classifier with HVAdam in Hugging Face's Trainer; offline, in seconds, on a CPU.

    python examples/finetune_hf.py
    torchrun --standalone --nproc-per-node 2 examples/finetune_hf.py

The model is a tiny BERT with random weights and the data a toy, so that nothing is downloaded. For
a real one replace ``build_model`` and ``encode`` by

    AutoModelForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=2)
    tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
    tokenizer(text, truncation=True, padding="max_length", max_length=128)

and start with a learning rate that is usual for AdamW on that model, such as 2e-5.
"""

import argparse
import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from transformers.trainer_utils import EvalPrediction, get_last_checkpoint

from hvadam import HVAdam

# Every sentence made of one word from each column; its label is whether the last word is kind.
COLUMNS = (
    ["this", "that", "the"],
    ["film", "book", "song", "play"],
    ["is", "was", "seems"],
    ["great", "lovely", "clever", "dull", "awful", "boring"],
)
KIND = {"great", "lovely", "clever"}
WORDS = ["[PAD]", *itertools.chain(*COLUMNS)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Fine-tune a tiny BERT with HVAdam and Trainer.")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="save here, resume from here"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as unused:  # Trainer makes its folder even to save nothing
        trainer = build_trainer(args.steps, args.checkpoint or Path(unused))
        found = get_last_checkpoint(trainer.args.output_dir)  # None starts from the beginning
        trainer.train(resume_from_checkpoint=found)
        trainer.evaluate()


def build_trainer(steps: int, directory: Path) -> Trainer:
    sentences = list(itertools.product(*COLUMNS))
    train = [words for i, words in enumerate(sentences) if i % 5]
    test = [words for i, words in enumerate(sentences) if i % 5 == 0]
    return DiagnosticTrainer(
        model=build_model(),
        # Trainer makes two groups, with and without weight decay, and hands both to one HVAdam:
        # they share one hidden vector. The learning rate goes here: Trainer does not pass on its
        # own `learning_rate` to a class it is given.
        optimizer_cls_and_kwargs=(HVAdam, {"lr": 5e-3}),
        args=TrainingArguments(
            output_dir=str(directory),
            max_steps=steps,
            per_device_train_batch_size=16,
            weight_decay=0.01,
            warmup_steps=5,
            lr_scheduler_type="cosine",
            max_grad_norm=1.0,  # clips here, so HVAdam is given no max_grad_norm of its own
            # A classifier's loss is a mean over sentences, not over tokens; else Trainer multiplies
            # it by the number of processes, and HVAdam's hidden step grows with the gradients.
            average_tokens_across_devices=False,
            logging_steps=10,
            save_steps=20,
            use_cpu=not torch.cuda.is_available(),  # else two processes on a CPU train two models
            dataloader_pin_memory=torch.cuda.is_available(),
            ddp_find_unused_parameters=False,
            report_to="none",
            disable_tqdm=True,
            seed=0,
        ),
        train_dataset=Sentences(train),
        eval_dataset=Sentences(test),
        compute_metrics=accuracy,
    )


def accuracy(result: EvalPrediction) -> dict[str, float]:
    guesses = np.asarray(result.predictions).argmax(-1)
    return {"accuracy": float((guesses == result.label_ids).mean())}


def build_model() -> BertForSequenceClassification:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        initializer_range=0.1,  # so narrow a network needs larger weights to start with
    )
    return BertForSequenceClassification(config)


def encode(words: tuple[str, ...]) -> dict[str, torch.Tensor]:
    """What a tokenizer would give."""
    return {
        "input_ids": torch.tensor([WORDS.index(word) for word in words]),
        "attention_mask": torch.ones(len(words), dtype=torch.long),
        "labels": torch.tensor(int(words[-1] in KIND)),
    }


class Sentences(Dataset[dict[str, torch.Tensor]]):
    """Encoded sentences with their labels."""

    def __init__(self, sentences: list[tuple[str, ...]]) -> None:
        self.rows = [encode(words) for words in sentences]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return self.rows[index]


class DiagnosticTrainer(Trainer):
    """Trainer that logs, beside the loss, what the hidden vector does; to every logger it has."""

    def log(self, logs: dict[str, float], *args, **kwargs) -> None:
        if "loss" in logs:
            wrapped: Any = self.optimizer  # by Accelerate
            found = wrapped.optimizer.diagnostics()["global"]
            for name in ("alignment", "hidden_gain", "restarts"):
                logs[f"hvadam/{name}"] = round(found[name], 4)
        super().log(logs, *args, **kwargs)


if __name__ == "__main__":
    main()
