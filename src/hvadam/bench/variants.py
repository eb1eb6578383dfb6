"""What low-bit state and the late step cost in training quality: paired runs on the digits.

    python -m hvadam.bench.variants

trains a perceptron and a CNN with each variant and with the exact float32 one, from the same
weights on the same batches, and reports the paired differences with a 95% interval (Student's t
over seeds), as a table and in ``results/variants.json``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.stats import t as student
from torch import nn

from hvadam._version import __version__
from hvadam.bench import digits
from hvadam.torch.optimizer import HVAdam

NETWORKS: dict[str, Callable[[int], nn.Module]] = {
    "MLP": digits.make_mlp,
    "CNN": digits.make_network,
}
EXACT = "exact, float32"
VARIANTS: dict[str, Mapping[str, Any]] = {
    EXACT: {},
    "bfloat16 state": {"state_dtype": "bfloat16"},
    "int8 state": {"state_dtype": "int8"},
    "late": {"hidden_step": "late"},
    "late, bfloat16 state": {"hidden_step": "late", "state_dtype": "bfloat16"},
}
SEEDS, EPOCHS, LR = 5, 30, 1e-3


@dataclass(frozen=True)
class Run:
    """The end of one run: the logarithm of the training loss, and the share of test hits."""

    network: str
    variant: str
    seed: int
    log_loss: float
    accuracy: float


@dataclass(frozen=True)
class Difference:
    """A variant less the exact one, over seeds: the mean and its 95% interval."""

    mean: float
    low: float
    high: float
    n: int


def main(out: Path = Path("results/variants.json")) -> None:
    """Run everything, print the table, write the numbers."""
    torch.set_num_threads(1)  # threads only slow down networks this small
    console = Console(width=max(88, Console().width))
    data = digits.load()
    plan = [(n, v, s) for s in range(SEEDS) for n in NETWORKS for v in VARIANTS]
    runs = [
        train(network, variant, seed, EPOCHS, data)
        for network, variant, seed in track(plan, "training", console=console)
    ]
    console.print(table(runs))
    out.parent.mkdir(exist_ok=True)
    out.write_text(as_json(runs) + "\n", encoding="utf-8")
    console.print(f"wrote {out}")


def train(network: str, variant: str, seed: int, epochs: int, data: digits.Digits) -> Run:
    """Train from a seed, which alone decides the weights and the order of the batches."""
    model = NETWORKS[network](seed)
    optimizer = HVAdam(model.parameters(), lr=LR, **VARIANTS[variant])
    shuffle = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        model.train()
        for batch in digits.batches(data.train, shuffle):
            optimizer.zero_grad()
            digits.batch_loss(model, batch).backward()
            optimizer.step()
    with optimizer.evaluation():
        loss = digits.mean_loss(model, data.train)
        return Run(network, variant, seed, math.log(loss), digits.accuracy(model, data.test))


def difference(runs: list[Run], network: str, variant: str, value: str) -> Difference:
    """The paired difference to the exact variant."""
    own, exact = (
        {run.seed: getattr(run, value) for run in runs if (run.network, run.variant) == key}
        for key in ((network, variant), (network, EXACT))
    )
    gaps = np.array([own[seed] - exact[seed] for seed in sorted(own)])
    n = len(gaps)
    half = student.ppf(0.975, n - 1) * gaps.std(ddof=1) / math.sqrt(n)
    return Difference(gaps.mean(), gaps.mean() - half, gaps.mean() + half, n)


def table(runs: list[Run]) -> Table:
    """One row per network and variant."""
    result = Table(
        caption=f"HVAdam, lr {LR:g}, {EPOCHS} epochs, against the exact float32 run from the same "
        "seed: final training loss as a ratio, test accuracy as a difference, mean [95% interval]. "
        "An interval around 1 or 0 is a tie.",
        caption_justify="left",
    )
    for heading in ("network", "variant", "loss ratio", "accuracy points", "n"):
        result.add_column(heading, no_wrap=True)
    for network in NETWORKS:
        for variant in VARIANTS:
            if variant == EXACT:
                continue
            loss = difference(runs, network, variant, "log_loss")
            hits = difference(runs, network, variant, "accuracy")
            result.add_row(
                network,
                variant,
                "{:.3f} [{:.3f}, {:.3f}]".format(*map(math.exp, (loss.mean, loss.low, loss.high))),
                "{:+.2f} [{:+.2f}, {:+.2f}]".format(
                    *(100 * x for x in (hits.mean, hits.low, hits.high))
                ),
                str(loss.n),
            )
    return result


def as_json(runs: list[Run]) -> str:
    """The runs and what they were made with."""
    content = {
        "versions": {"hvadam": __version__, "torch": torch.__version__},
        "epochs": EPOCHS,
        "lr": LR,
        "runs": [asdict(run) for run in runs],
        "differences": [
            {"network": n, "variant": v, "value": x, **asdict(difference(runs, n, v, x))}
            for n in NETWORKS
            for v in VARIANTS
            if v != EXACT
            for x in ("log_loss", "accuracy")
        ],
    }
    return json.dumps(content, indent=1, allow_nan=False)


if __name__ == "__main__":
    main()
