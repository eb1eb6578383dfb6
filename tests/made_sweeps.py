"""Records that no run made, for tests of what reads records: curves of a formula and a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from made_records import made_record

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Point, Record, Role, Status, Store
from hvadam_bench.sweeping.engines import Job, Outcome, perform
from hvadam_bench.sweeping.search import TUNING_SEED

RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
SEEDS = range(5)
STEPS = 400
ENVIRONMENT = {
    "versions": {"hvadam": "0.1", "torch": "2.13"},
    "machine": {"processor": "made up", "cores": 2},
    "commit": "0" * 40,
    "dirty": False,
}


class Made(NamedTuple):
    """A task whose metric ends `quality` above chance, more or less by contender."""

    name: str
    title: str
    metric: str
    goal: Literal["min", "max"]
    start: float
    end: float
    published: Mapping[str, float] = {}
    published_from: str = ""


TASKS = (
    Made("cifar10_resnet", "ResNet on CIFAR-10", "accuracy", "max", 0.1, 0.80),
    Made("ptb_lstm", "LSTM on Penn Treebank", "perplexity", "min", 9000.0, 85.0),
    Made("digits_cnn", "Small CNN on scikit-learn's digits", "accuracy", "max", 0.1, 0.975),
)
# How far to the left of 0 (the best there is) a contender ends, in shares of the way; seconds/step.
SKILL = {
    "sgd": (0.10, 0.008),
    "adam": (0.040, 0.010),
    "adamw": (0.038, 0.010),
    "adabelief": (0.030, 0.011),
    "lion": (0.045, 0.009),
    "hvadam": (0.012, 0.012),
    "hvadam0": (0.040, 0.012),
    "hvadam1": (0.034, 0.012),
    "hvadam2": (0.020, 0.012),
}


def record(
    task: Made = TASKS[0],
    contender: str = "adam",
    *,
    scale: str = "laptop",
    seed: int = 0,
    role: Role = "judged",
    lr: float = 1e-3,
    status: Status = "done",
    reason: str = "",
    loss: float = 0.04,
    pace: float = 0.01,
    options: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    alone: bool | None = True,
) -> Record:
    """Return one run; of one that is not done, half the curve."""
    chance = random.Random(f"{task.name} {contender} {seed} {lr}")
    off = abs(math.log10(lr) + 3)  # everyone likes 1e-3
    share = min(1.0, loss + 0.03 * off**2 + chance.uniform(0, 0.012))
    last = STEPS if status == "done" else STEPS // 2
    points = []
    for step in range(0, last + 1, STEPS // 20):
        left = math.exp(-6 * step / STEPS * (1.5 - 5 * loss))
        way = (1 - share) * (1 - left) + chance.uniform(-0.004, 0.004) * (step > 0)
        value = _at(task, way)
        points.append(Point(step, 64 * step, pace * step, 2.3 * left + share, {task.metric: value}))
    test = {task.metric: _at(task, 1 - share - 0.005)} if status == "done" else {}
    return Record(
        config=RunConfig(
            task.name,
            contender,
            scale,
            seed,
            {"lr": lr} if options is None else options,
            settings or {},
        ),
        status=status,
        reason=reason,
        curve=tuple(points),
        test=test,
        train_seconds=pace * last,
        evaluation_seconds=1.0,
        environment=ENVIRONMENT,
        title=task.title,
        metric=task.metric,
        goal=task.goal,
        published=task.published.get(contender),
        published_from=task.published_from,
        role=role,
        alone=alone,
    )


def sweep(
    task: Made = TASKS[0], contenders: Mapping[str, tuple[float, float]] = SKILL, **more: Any
) -> Iterator[Record]:
    """Yield what a sweep leaves: a tuning run per rate, the judged ones, some that failed."""
    for name, (loss, pace) in contenders.items():
        common = {"loss": loss, "pace": pace, **more}
        for lr in RATES:
            fate: dict[str, Any] = {}
            if lr == RATES[-1]:
                fate = {"status": "diverged", "reason": "loss was nan at step 213"}
            elif lr == RATES[0]:
                fate = {"status": "pruned", "reason": "below the median at step 200"}
            yield record(task, name, lr=lr, seed=TUNING_SEED, role="tuning", **fate, **common)
        for seed in SEEDS:
            fate = {}
            if name == "lion" and seed == 3:
                fate = {"status": "diverged", "reason": "loss was inf at step 130"}
            yield record(task, name, lr=1e-3, seed=seed, **fate, **common)


def _at(task: Made, way: float) -> float:
    """Return the metric when this share of the way from start to end is done."""
    if task.start / task.end > 10:  # a perplexity falls by factors
        return task.start * (task.end / task.start) ** way
    return task.start + (task.end - task.start) * way


# Engines for the tests of sweeps: one whose runs end at once, one that trains here.
class Instant:
    """An engine whose runs end at once, at what a function of their configuration says."""

    slots = 2

    def __init__(self, store: Store, end: Callable[[RunConfig], Record | Outcome]) -> None:
        self.store = store
        self.end = end
        self.jobs: list[Job] = []
        self.running: list[Job] = []

    def submit(self, job: Job) -> None:
        """Take a job."""
        self.jobs.append(job)
        self.running.append(job)

    def wait(self, seconds: float) -> Sequence[Outcome]:
        """Return what came of all that is under way."""
        jobs, self.running = self.running, []
        return [self.outcome(job) for job in jobs]

    def outcome(self, job: Job) -> Outcome:
        """End a job."""
        came = self.end(job.config)
        if isinstance(came, Outcome):
            return came
        self.store.put(replace(came, study=job.study, role=job.role))
        return Outcome(job.config, "over")

    def close(self) -> None:
        """Do nothing."""

    @property
    def tuning(self) -> list[RunConfig]:
        """Return what ran to choose options."""
        return [job.config for job in self.jobs if job.role == "tuning"]


class Inline(Instant):
    """An engine that trains here, one at a time."""

    slots = 1

    def __init__(self, store: Store) -> None:
        super().__init__(store, peak(1.0))

    def outcome(self, job: Job) -> Outcome:
        """Train."""
        return perform(job, self.store)


def peak(best: float) -> Callable[[RunConfig], Record]:
    """Return accuracies by the distance from the best learning rate; none beyond 100 times it."""

    def end(config: RunConfig) -> Record:
        distance = math.log10(config.options["lr"] / best)
        status = "diverged" if distance > 2 else "done"
        return made_record(1 - abs(distance) / 20, config=config, status=status)

    return end
