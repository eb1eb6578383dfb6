"""The runner versus a loop written by hand: blocks of the same steps, in turns.

Adam trains at laptop scale. After every block of the runner's steps, checkpoints and progress bar
included, the same steps are taken by a bare loop on weights of its own. Evaluations are left out.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from rich.console import Console

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.progress import Bars
from hvadam_bench.running.records import Point, Record, Store
from hvadam_bench.running.runner import Watcher, run
from hvadam_bench.running.training import Training
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.speed.plan import Plan

BLOCK = 20  # steps
CLOCKS = ("clock", "CPU")  # the second leaves out waiting for the disk or another process
RUNS = (RunConfig("fashion_mnist_cnn", "adam"), RunConfig("digits_cnn", "adam"))
SHORT_RUNS = (RunConfig("digits_mlp", "adam", scale="smoke", settings={"epochs": 5}),)


def benchmark(plan: Plan, on_progress: OnProgress = ignore_progress) -> dict[str, Any]:
    """Time the runner's blocks on every task, whose data has to be here; the first warms up."""
    runs = SHORT_RUNS if plan.smoke else RUNS
    shapes: list[dict[str, Any]] = []
    for config in runs:
        on_progress(config.task, 0.0)
        watcher = Interleaved()
        with tempfile.TemporaryDirectory() as folder:
            run(config, Store(Path(folder)), watcher=watcher)
        # Blocks x (runner, by hand) x clocks, to clocks x both x blocks, in seconds per step.
        times = (np.array(watcher.seconds[1:]) / BLOCK).transpose(2, 1, 0).tolist()
        rows = [
            {"contender": clock, "seconds": own, "reference_seconds": by_hand}
            for clock, (own, by_hand) in zip(CLOCKS, times, strict=True)
        ]
        shapes.append({"name": config.task, "title": config.task, "results": rows, "skipped": []})
        on_progress("", 1 / len(runs))
    return {"block": BLOCK, "shapes": shapes}


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


def _clocks() -> np.ndarray:
    return np.array([perf_counter(), process_time()])
