"""What HVAdam costs in whole training steps, beside fused AdamW: `hvadam speed --training`.

A training step is zeroing the gradients, the forward and the backward pass and the optimizer. Every
contender trains a network of its own, in turns with fused AdamW on another copy; the optimizer's
own time inside of each step is taken too.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from hvadam import info
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies import json_form
from hvadam_bench.studies.progress import OnProgress, say_nothing
from hvadam_bench.studies.speed.contenders import CONTENDERS, REFUSALS, Contender
from hvadam_bench.studies.speed.memory import release, state_bytes, temporary_bytes
from hvadam_bench.studies.speed.result import Quartiles, Skip
from hvadam_bench.studies.speed.timing import Clock

NAMES = ("HVAdam native", "HVAdam native, bf16 state", "HVAdam native, int8 state")
BY_NAME = {one.name: one for one in CONTENDERS}
REFERENCE = BY_NAME["AdamW fused"]
TRAINED = tuple(BY_NAME[name] for name in NAMES)


@dataclass(frozen=True)
class Workload:
    """A network to train on one made-up batch.

    Attributes:
        name: For the command line.
        title: For people.
        make: () -> the network, and what gives its loss.
    """

    name: str
    title: str
    make: Callable[[], tuple[nn.Module, Callable[[Any], Tensor]]]


@dataclass(frozen=True)
class TrainingTime:
    """Whole steps of one contender, a number per round in the tuples.

    Attributes:
        contender: Who.
        seconds, optimizer_seconds: Of a training step, and of the optimizer in it.
        reference_seconds, reference_optimizer_seconds: Of fused AdamW beside it.
        peak_bytes, reference_peak_bytes: Parameters, state, and the most that a step holds besides.
    """

    contender: str
    seconds: tuple[float, ...]
    optimizer_seconds: tuple[float, ...]
    reference_seconds: tuple[float, ...]
    reference_optimizer_seconds: tuple[float, ...]
    peak_bytes: int
    reference_peak_bytes: int

    DERIVED: ClassVar = ("added", "optimizer_ratio", "optimizer_share", "memory_added")

    @property
    def added(self) -> Quartiles:
        """Return what the contender adds to a training step, as a part of AdamW's."""
        return _ratios(self.seconds, self.reference_seconds, less=1.0)

    @property
    def optimizer_ratio(self) -> Quartiles:
        """Return the time of the optimizer alone over that of AdamW alone."""
        return _ratios(self.optimizer_seconds, self.reference_optimizer_seconds)

    @property
    def optimizer_share(self) -> Quartiles:
        """Return the optimizer's part of its training steps."""
        return _ratios(self.optimizer_seconds, self.seconds)

    @property
    def memory_added(self) -> float:
        """Return what the contender adds to the peak of memory, as a part of AdamW's."""
        return self.peak_bytes / self.reference_peak_bytes - 1


@dataclass(frozen=True)
class Trained:
    """All contenders on one workload."""

    name: str
    title: str
    parameters: int
    results: tuple[TrainingTime, ...]
    skipped: tuple[Skip, ...]


@dataclass(frozen=True)
class TrainingSpeed:
    """Every raw number and what it was made with."""

    date: str
    versions: Mapping[str, Any]
    machine: Mapping[str, Any]
    threads: int
    rounds: int
    workloads: tuple[Trained, ...]

    def save(self, path: Path) -> None:
        """Write the JSON form."""
        text = json.dumps(json_form.to_json(self), indent=2, allow_nan=False)
        write_atomically(path, f"{text}\n".encode())

    @classmethod
    def load(cls, path: Path) -> TrainingSpeed:
        """Read what ``save`` wrote."""
        return json_form.from_json(cls, json.loads(path.read_text(encoding="utf-8")))


def measure(
    workloads: Sequence[Workload],
    contenders: Sequence[Contender] = TRAINED,
    *,
    rounds: int = 7,
    steps: int = 3,
    threads: int = 1,
    clock: Clock = perf_counter,
    on_progress: OnProgress = say_nothing,
) -> TrainingSpeed:
    """Time whole training steps of every contender beside fused AdamW's.

    Args:
        workloads: What is trained.
        contenders: Who trains.
        rounds: Pairs of groups of steps.
        steps: In each group.
        threads: How many torch may use.
        clock: Seconds, from anywhere.
        on_progress: Told between timed groups only, so that it disturbs none.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        share = 1 / (len(workloads) * len(contenders))
        found: list[Trained] = []
        for workload in workloads:
            found.append(_trained(workload, contenders, rounds, steps, clock, share, on_progress))
            release()
        about = info.collect()
    finally:
        torch.set_num_threads(before)
    return TrainingSpeed(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=about["versions"],
        machine=about["machine"] | {"native_instruction_set": about["instruction_set"]},
        threads=threads,
        rounds=rounds,
        workloads=tuple(found),
    )


class _Training:
    """A contender that trains a network of its own."""

    def __init__(self, workload: Workload, contender: Contender, clock: Clock) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.network, self.loss = workload.make()
        self.optimizer = contender.build(list(self.network.parameters()))
        self.clock = clock
        self.in_optimizer = 0.0
        self.step()  # makes the state
        self.step()

    def step(self) -> None:
        """Take one training step."""
        self.optimizer.zero_grad()
        self.loss(self.network).backward()
        before = self.clock()
        self.optimizer.step()
        self.in_optimizer += self.clock() - before

    def run(self, steps: int) -> tuple[float, float]:
        """Return seconds per step, and those of the optimizer in it."""
        gc.collect()
        self.in_optimizer = 0.0
        before = self.clock()
        for _ in range(steps):
            self.step()
        return (self.clock() - before) / steps, self.in_optimizer / steps

    def peak_bytes(self) -> int:
        """Return parameters, state, and the most that a step holds besides."""
        self.optimizer.zero_grad()
        kept = sum(p.nbytes for p in self.network.parameters()) + state_bytes(self.optimizer)
        return kept + temporary_bytes(self.step)


def _trained(
    workload: Workload,
    contenders: Sequence[Contender],
    rounds: int,
    steps: int,
    clock: Clock,
    share: float,
    on_progress: OnProgress,
) -> Trained:
    beside = _Training(workload, REFERENCE, clock)
    peak_beside = beside.peak_bytes()
    results: list[TrainingTime] = []
    skipped: list[Skip] = []
    for contender in contenders:
        on_progress(f"{workload.name}: {contender.name}", 0.0)
        try:
            training = _Training(workload, contender, clock)
        except REFUSALS as error:
            skipped.append(Skip(contender.name, " ".join(str(error).split())))
            on_progress("", share)
            continue
        pairs: list[tuple[tuple[float, float], tuple[float, float]]] = []
        for number in range(rounds):
            if number % 2:  # take turns, so that a machine that slows down favours neither
                own = training.run(steps)
                pairs.append((own, beside.run(steps)))
            else:
                other = beside.run(steps)
                pairs.append((training.run(steps), other))
            on_progress("", share / rounds)
        results.append(
            TrainingTime(
                contender=contender.name,
                seconds=tuple(own[0] for own, _ in pairs),
                optimizer_seconds=tuple(own[1] for own, _ in pairs),
                reference_seconds=tuple(other[0] for _, other in pairs),
                reference_optimizer_seconds=tuple(other[1] for _, other in pairs),
                peak_bytes=training.peak_bytes(),
                reference_peak_bytes=peak_beside,
            )
        )
        del training
        release()
    parameters = sum(p.numel() for p in beside.network.parameters())
    return Trained(workload.name, workload.title, parameters, tuple(results), tuple(skipped))


def _ratios(ours: Sequence[float], theirs: Sequence[float], less: float = 0.0) -> Quartiles:
    return Quartiles.of([a / b - less for a, b in zip(ours, theirs, strict=True)])
