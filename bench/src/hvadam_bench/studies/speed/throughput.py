"""What the runner costs beside a loop written by hand: paired blocks of steps, in turns.

    hvadam throughput

trains with Adam at laptop scale, by default the CNNs on Fashion-MNIST and on the digits. After
every block of the runner's steps, checkpoints and progress bar included, the same steps are taken
by a bare loop on weights of its own. Evaluations are left out.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from rich.console import Console

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.progress import Bars
from hvadam_bench.running.records import Point, Record, Store
from hvadam_bench.running.runner import Watcher, run
from hvadam_bench.running.training import Training

BLOCK = 20
Clock = Literal["clock", "CPU"]
CLOCKS: tuple[Clock, ...] = get_args(Clock)


class Overhead(NamedTuple):
    """What the runner costs on a task, by one clock.

    Attributes:
        task, clock: Which.
        step: Seconds of a step by hand.
        ratio, low, high: Of the runner's seconds to the bare loop's: median and quartiles of the
            blocks.
        total: The same ratio of all blocks together, which counts every checkpoint.
        n: Blocks.
    """

    task: str
    clock: Clock
    step: float
    ratio: float
    low: float
    high: float
    total: float
    n: int


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
    """Return the seconds of a run's blocks but for the first, which warms up.

    Returns:
        Blocks x (runner, by hand) x (clock, processor).
    """
    watcher = Interleaved()
    with tempfile.TemporaryDirectory() as folder:
        run(config, Store(Path(folder)), watcher=watcher)
    return np.array(watcher.seconds[1:])


def summarize(task: str, seconds: np.ndarray) -> list[Overhead]:
    """Return what the runner costs on a task, by either clock."""
    found: list[Overhead] = []
    for name, (runner, by_hand) in zip(CLOCKS, seconds.T, strict=True):
        low, middle, high = np.percentile(runner / by_hand, (25, 50, 75)).tolist()
        step = float(np.median(by_hand)) / BLOCK
        total = float(runner.sum() / by_hand.sum())
        found.append(Overhead(task, name, step, middle, low, high, total, len(runner)))
    return found


def _clocks() -> np.ndarray:
    return np.array([perf_counter(), process_time()])
