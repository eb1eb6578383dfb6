"""What the runner costs beside a loop written by hand: paired blocks of steps, in turns.

    python -m hvadam.bench.throughput [TASK ...]

trains with Adam at laptop scale, by default the CNNs on Fashion-MNIST and on the digits. After
every block of the runner's steps, checkpoints and progress bar included, the same steps are taken
by a bare loop on weights of its own. Evaluations are left out.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import torch
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hvadam.bench.config import RunConfig
from hvadam.bench.progress import Bars
from hvadam.bench.records import Point, Record, Store
from hvadam.bench.runner import Watcher, run
from hvadam.bench.training import Training

TASKS = ("fashion_mnist_cnn", "digits_cnn")
BLOCK = 20


class Interleaved(Watcher):
    """Takes the runner's time from block to block, and the bare loop's in between.

    Attributes:
        seconds: (runner, by hand) of each block, each on the clock and of the processor.
    """

    def __init__(self) -> None:
        self.seconds: list[tuple[np.ndarray, np.ndarray]] = []
        self._bars = Bars(Console(file=io.StringIO(), force_terminal=True))
        self._bar = self._bars.watch()

    def started(self, config: RunConfig, steps: int, step: int, curve: Sequence[Point]) -> None:
        self._bar.started(config, steps, step, curve)
        self._twin = Training(config)
        self._done = 0
        self._begin()

    def stepped(self, step: int, loss: float) -> None:
        self._bar.stepped(step, loss)
        self._last = _clocks()
        if step - self._done == BLOCK:
            runner = self._last - self._begun - self._evaluating
            self._bars.__exit__()  # its thread works for the runner alone
            self.seconds.append((runner, self._by_hand(self._done)))
            self._done = step
            self._begin()

    def evaluated(self, point: Point) -> None:
        self._evaluating += _clocks() - self._last
        self._bar.evaluated(point)

    def ended(self, record: Record) -> None:
        self._bars.__exit__()

    def _begin(self) -> None:
        self._bars.__enter__()
        self._evaluating = np.zeros(2)
        self._begun = self._last = _clocks()

    def _by_hand(self, first: int) -> np.ndarray:
        problem, adam = self._twin.problem, self._twin.optimizers["model"]
        torch.use_deterministic_algorithms(False)
        started = _clocks()
        for step in range(first, first + BLOCK):
            for loss, _ in problem.updates(problem.batch(step)):
                adam.zero_grad()
                loss.backward()
                adam.step()
        seconds = _clocks() - started
        torch.use_deterministic_algorithms(True)
        return seconds


def measure(config: RunConfig) -> np.ndarray:
    """Of one run: blocks x (runner, by hand) x (clock, processor), but for the first, a warm-up."""
    watcher = Interleaved()
    with tempfile.TemporaryDirectory() as folder:
        run(config, Store(Path(folder)), watcher=watcher)
    return np.array(watcher.seconds[1:])


def rows(task: str, seconds: np.ndarray) -> list[list[str]]:
    """For either clock: the step by hand, the ratio's quartiles, the ratio of the sums, and n."""
    found = []
    for name, (runner, by_hand) in zip(("clock", "CPU"), seconds.T, strict=True):
        low, middle, high = np.percentile(runner / by_hand, (25, 50, 75))
        step = f"{1e3 * np.median(by_hand) / BLOCK:.2f} ms"
        ratio = f"{middle:.3f} [{low:.3f}, {high:.3f}]"
        found.append(
            [task, name, step, ratio, f"{runner.sum() / by_hand.sum():.3f}", str(len(runner))]
        )
    return found


def main(tasks: Sequence[str]) -> None:
    """Measure and print."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=Text(
            f"Adam, one thread, n blocks of {BLOCK} steps. Ratio: the runner's seconds over "
            "the bare loop's, median [quartiles] of the blocks, and of all together, which counts "
            "every checkpoint. Seconds of the CPU leave out waiting, for the disk or for another "
            "process."
        ),
        caption_justify="left",
    )
    for heading in ("task", "seconds", "step by hand", "ratio", "all", "n"):
        table.add_column(heading, no_wrap=True)
    for task in tasks:
        for row in rows(task, measure(RunConfig(task, "adam"))):
            table.add_row(*map(Text, row))
    Console().print(table)


def _clocks() -> np.ndarray:
    return np.array([perf_counter(), process_time()])


if __name__ == "__main__":
    main(sys.argv[1:] or TASKS)
