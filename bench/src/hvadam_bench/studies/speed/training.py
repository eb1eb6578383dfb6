"""What a training step costs: with HVAdam versus fused AdamW, and by the runner versus by hand.

A training step is zeroing the gradients, the forward and the backward pass and the optimizer. Every
contender trains a network of its own, in turns with fused AdamW on another copy; the optimizer's
own time inside of each step is taken too.

The runner trains with Adam at laptop scale. After every block of its steps, checkpoints and bars
included, the same steps are taken by a bare loop on weights of its own. Evaluations are left
out. The runner is always first, because it calls us in between.
"""

from __future__ import annotations

import gc
import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.progress import Bars
from hvadam_bench.running.records import Point, Record, Store
from hvadam_bench.running.runner import Watcher, run
from hvadam_bench.running.training import Training
from hvadam_bench.studies._pairs import Clock, Field, race_all
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.speed.contenders import ADAMW, TRAINED, Contender
from hvadam_bench.studies.speed.plan import Plan
from hvadam_bench.studies.speed.steps import release, state_bytes, temporary_bytes
from hvadam_bench.tasks._perceptron import tanh_mlp
from hvadam_bench.tasks.language.recurrent import AWDLSTM
from hvadam_bench.tasks.language.transformer import TransformerLM
from hvadam_bench.tasks.physics.jets import jet
from hvadam_bench.tasks.vision.networks import Basic, ResNet

Made = tuple[nn.Module, Callable[[Any], Tensor]]  # a network, and what gives its loss
Workload = Callable[[], Made]  # with one synthetic batch
BLOCK = 20  # steps of the runner
CLOCKS = ("clock", "CPU")  # the second leaves out waiting for the disk or another process
RUNS = (RunConfig("fashion_mnist_cnn", "adam"), RunConfig("digits_cnn", "adam"))
SHORT_RUNS = (RunConfig("digits_mlp", "adam", scale="smoke", settings={"epochs": 5}),)


def _resnet18() -> Made:
    images, labels = torch.randn(32, 3, 64, 64), torch.randint(0, 1000, (32,))
    network = ResNet(Basic, (2, 2, 2, 2), 1000, stem="imagenet")
    return network, lambda own: cross_entropy(own(images), labels)


def _gpt2_small() -> Made:
    words = 50_257
    tokens = torch.randint(0, words, (2, 129))
    network = TransformerLM(words, 768, 4 * 768, 12, 12, 0.0)
    following = tokens[:, 1:].flatten()
    return network, lambda own: cross_entropy(own(tokens[:, :-1]).flatten(0, 1), following)


def _lstm() -> Made:
    words = torch.randint(0, 10_000, (36, 20))
    return AWDLSTM(10_000), lambda own: own.loss(own(words[:-1]).dropped, words[1:])


def _pinn() -> Made:
    points = torch.rand(2500, 2)

    def loss(own: Any) -> Tensor:
        at = jet(own, points, ("t", "xx"))
        return (at["t"] - 0.1 * at["xx"]).square().mean()

    return tanh_mlp([2, 50, 50, 50, 1]), loss


WORKLOADS: Mapping[str, tuple[str, Workload]] = {
    "resnet18": ("ResNet-18, 32 images of 64×64", _resnet18),
    "gpt2": ("GPT-2 small, 2 × 128 tokens", _gpt2_small),
    "lstm": ("LSTM of 400 units, 10,000 words, 20 × 35 of them", _lstm),
    "pinn": ("physics-informed network of 3 × 50, 2,500 points", _pinn),
}


def benchmark(
    plan: Plan,
    on_progress: OnProgress = ignore_progress,
    *,
    workloads: Mapping[str, tuple[str, Workload]] = WORKLOADS,
    contenders: Sequence[Contender] = TRAINED,
    reference: Contender = ADAMW,
    clock: Clock = perf_counter,
) -> dict[str, Any]:
    """Time groups of training steps of every contender versus the reference's."""
    new = partial(Trial, steps=1 if plan.smoke else 3, clock=clock)
    fields = [
        Field(
            {"name": name, "title": title},
            1.0,
            partial(new, make, reference),
            {one.name: partial(new, make, one) for one in contenders},
            at_once=1,  # networks are large
        )
        for name, (title, make) in workloads.items()
    ]
    timed = race_all(fields, plan.rounds, on_progress)
    return {"reference": reference.name, "workloads": timed}


class Trial:
    """A contender that trains a network of its own.

    Attributes:
        facts: The bytes of parameters, state and the most that a step holds besides.
    """

    def __init__(
        self,
        make: Workload,
        contender: Contender,
        reference: Trial | None = None,
        *,
        steps: int,
        clock: Clock,
    ) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self._network, self._loss = make()
        params = list(self._network.parameters())
        self._optimizer = contender.build(params)
        self._steps, self._clock = steps, clock
        self._in_optimizer = 0.0
        self.step()  # makes the state
        self.step()
        self._optimizer.zero_grad()
        kept = sum(p.nbytes for p in params) + state_bytes(self._optimizer)
        peak = kept + temporary_bytes(self.step)
        self.facts: dict[str, Any] = {"peak_bytes": peak}
        self.facts["reference_peak_bytes"] = reference.facts["peak_bytes"] if reference else peak

    def group(self, threads: int | None) -> dict[str, float]:
        """Return seconds per step, and those of the optimizer in it."""
        gc.collect()
        self._in_optimizer = 0.0
        before = self._clock()
        for _ in range(self._steps):
            self.step()
        seconds = (self._clock() - before) / self._steps
        return {"seconds": seconds, "optimizer_seconds": self._in_optimizer / self._steps}

    def step(self) -> None:
        """Take one training step."""
        self._optimizer.zero_grad()
        self._loss(self._network).backward()
        before = self._clock()
        self._optimizer.step()
        self._in_optimizer += self._clock() - before

    def close(self) -> None:
        """Free the network; the facts stay."""
        del self._network, self._loss, self._optimizer
        release()


def benchmark_runner(plan: Plan, on_progress: OnProgress = ignore_progress) -> dict[str, Any]:
    """Time the runner's blocks on every task, whose data has to be here; the first warms up."""
    runs = SHORT_RUNS if plan.smoke else RUNS
    shapes: list[dict[str, Any]] = []
    for config in runs:
        on_progress(config.task, 0.0)
        watcher = Interleaved()
        with TemporaryDirectory() as folder:
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
        self._begin()

    def stepped(self, step: int, loss: float) -> None:
        self._bar.stepped(step, loss)
        self._last = _clocks()
        if step % BLOCK == 0:
            runner = self._last - self._begun - self._evaluating
            self._bars.__exit__()  # its thread works for the runner alone
            self.seconds.append((runner, self._by_hand(step - BLOCK)))
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
