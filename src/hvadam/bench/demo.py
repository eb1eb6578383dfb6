"""The demo: HVAdam beside three well-known optimizers on the digits, as a table and a figure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from hvadam._version import __version__
from hvadam.bench import digits
from hvadam.bench.digits import Digits
from hvadam.torch.optimizer import HVAdam

CAPTION = (
    "Mean ± sample standard deviation over n seeds. Training loss: the whole training set after "
    "the last epoch. Seconds: training steps only. Every learning rate is fixed and nothing is "
    "tuned: a demonstration, not a comparison."
)


@dataclass(frozen=True)
class Contender:
    """An optimizer with its options, and how its curve is drawn."""

    name: str
    optimizer: Callable[..., Optimizer]
    options: Mapping[str, float]
    color: str
    dashes: str

    def build(self, params: Iterable[nn.Parameter]) -> Optimizer:
        """The optimizer for these parameters."""
        return self.optimizer(params, **self.options)


# Colours of Okabe and Ito, told apart under every common colour blindness. Dashes differ too, for
# the curves of Adam and AdamW lie on top of each other.
CONTENDERS = (
    Contender("HVAdam", HVAdam, {"lr": 1e-3}, "#D55E00", "-"),
    Contender("Adam", Adam, {"lr": 1e-3}, "#0072B2", "-"),
    Contender("AdamW", AdamW, {"lr": 1e-3}, "#56B4E9", "--"),
    Contender("SGD momentum", SGD, {"lr": 0.1, "momentum": 0.9}, "#009E73", "-."),
)


@dataclass(frozen=True)
class Run:
    """One contender trained from one seed; ``train_losses[0]`` is the loss before training."""

    contender: str
    seed: int
    train_losses: tuple[float, ...]
    test_accuracy: float
    seconds: float


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation (None for a single value) of n values."""

    mean: float
    spread: float | None
    n: int

    def format(self, spec: str, unit: str = "") -> str:
        """As "mean ± spread unit"."""
        spread = "" if self.spread is None else f" ± {self.spread:{spec}}"
        return f"{self.mean:{spec}}{spread}{unit}"


def demonstrate(epochs: int, seeds: int, out: Path, console: Console) -> None:
    """Train every contender from every seed, show the table, write figure and numbers to ``out``.

    Args:
        epochs: Passes over the training set.
        seeds: How many; they are 0, 1, ...
        out: An existing directory.
        console: Where progress and the table go.
    """
    data = digits.load()
    plan = f"optimizers: {len(CONTENDERS)}, seeds: {seeds}, epochs: {epochs}"
    console.print(f"Training a small CNN on {len(data.train)} digits; {plan}.")
    runs = run_all(data, epochs, seeds, console)
    console.print(table(runs))

    figure_path, results_path = out / "loss_curves.png", out / "results.json"
    draw(runs).savefig(figure_path, dpi=150)
    results_path.write_text(as_json(runs, data, epochs) + "\n", encoding="utf-8")
    for path in (figure_path, results_path):
        console.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)


def run_all(data: Digits, epochs: int, seeds: int, console: Console) -> list[Run]:
    """Train every contender from every seed under a progress bar."""
    runs: list[Run] = []
    columns = (
        TextColumn("{task.description:<22}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[note]:<11}"),
        TimeRemainingColumn(),
    )
    shown = console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:
        overall = bar.add_task("all runs", total=len(CONTENDERS) * seeds * epochs, note="")
        current = bar.add_task("", total=epochs, note="")

        def advance(loss: float) -> None:
            bar.advance(overall)
            bar.update(current, advance=1, note=f"loss {loss:.4f}")

        # Seeds outside, so that a slow spell of the machine falls on every contender alike.
        for seed in range(seeds):
            for contender in CONTENDERS:
                bar.reset(current, description=f"{contender.name}, seed {seed}", note="")
                runs.append(train(contender, seed, epochs, data, advance))
    return runs


@contextmanager
def _single_thread() -> Iterator[None]:
    """One core: threads only slow down a network this small, badly so on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@_single_thread()
def train(
    contender: Contender,
    seed: int,
    epochs: int,
    data: Digits,
    on_epoch: Callable[[float], None] = lambda loss: None,
) -> Run:
    """Train from a seed: it alone decides the initial weights and the order of the batches."""
    network = digits.make_network(seed)
    optimizer = contender.build(network.parameters())
    shuffle = torch.Generator().manual_seed(seed)
    losses = [digits.mean_loss(network, data.train)]
    seconds = 0.0
    for _ in range(epochs):
        start = perf_counter()
        train_epoch(network, optimizer, data, shuffle)
        seconds += perf_counter() - start
        losses.append(digits.mean_loss(network, data.train))
        on_epoch(losses[-1])
    test_accuracy = digits.accuracy(network, data.test)
    return Run(contender.name, seed, tuple(losses), test_accuracy, seconds)


def train_epoch(
    network: nn.Module, optimizer: Optimizer, data: Digits, shuffle: torch.Generator
) -> None:
    """One pass over the training set."""
    network.train()
    for batch in digits.batches(data.train, shuffle):
        optimizer.zero_grad()
        digits.batch_loss(network, batch).backward()
        optimizer.step()


def summarize(values: Sequence[float]) -> Summary:
    """Mean and spread; NaN if a run diverged."""
    with np.errstate(invalid="ignore"):
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Summary(float(np.mean(values)), spread, len(values))


def table(runs: Sequence[Run]) -> Table:
    """One row per contender, with n beside the means."""
    result = Table(box=box.SIMPLE_HEAD, caption=CAPTION, caption_justify="left")
    result.add_column("contender", no_wrap=True)
    for heading in ("learning\nrate", "final\ntraining loss", "test accuracy", "seconds", "n"):
        result.add_column(heading, justify="right", no_wrap=True)
    for contender in CONTENDERS:
        own = [run for run in runs if run.contender == contender.name]
        loss = summarize([run.train_losses[-1] for run in own])
        accuracy = summarize([100 * run.test_accuracy for run in own])
        seconds = summarize([run.seconds for run in own])
        result.add_row(
            contender.name,
            f"{contender.options['lr']:g}",
            loss.format(".1e"),
            accuracy.format(".1f", unit=" %"),
            seconds.format(".1f"),
            str(loss.n),
        )
    return result


def draw(runs: Sequence[Run]) -> Figure:
    """Training loss against epochs: mean and min-max band of every contender."""
    figure = Figure(figsize=(8, 5), layout="constrained")  # without pyplot no window can open
    axes = figure.subplots()
    for contender in CONTENDERS:
        curves = np.array([run.train_losses for run in runs if run.contender == contender.name])
        low, mean, high = curves.min(axis=0), curves.mean(axis=0), curves.max(axis=0)
        epochs = np.arange(len(mean))
        label = f"{contender.name} (lr {contender.options['lr']:g})"
        width, layer = (2.8, 4) if contender.optimizer is HVAdam else (1.6, 3)
        line = {"color": contender.color, "ls": contender.dashes, "lw": width, "zorder": layer}
        axes.plot(epochs, mean, label=label, **line)
        axes.fill_between(epochs, low, high, color=contender.color, alpha=0.18, lw=0)
    n = len({run.seed for run in runs})
    title = "Training loss of a small CNN on scikit-learn's digits"
    axes.set_title(f"{title}\nmean over n = {n} seeds, band from min to max; nothing is tuned")
    axes.set(xlabel="epoch", ylabel="mean cross-entropy of the training set", yscale="log")
    axes.margins(x=0.01)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def as_json(runs: Sequence[Run], data: Digits, epochs: int) -> str:
    """The raw numbers and what they were made with; a loss that is not finite is null."""
    rows = [asdict(run) for run in runs]
    for row in rows:  # JSON has no NaN
        row["train_losses"] = [x if math.isfinite(x) else None for x in row["train_losses"]]
    content = {
        "versions": {"hvadam": __version__, "torch": torch.__version__},
        "train_images": len(data.train),
        "test_images": len(data.test),
        "batch_size": digits.BATCH_SIZE,
        "epochs": epochs,
        "contenders": {contender.name: dict(contender.options) for contender in CONTENDERS},
        "runs": rows,
    }
    return json.dumps(content, indent=2, allow_nan=False)
