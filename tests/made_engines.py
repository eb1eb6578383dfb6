"""Engines for the tests of sweeps: one whose runs end at once, one that trains here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from made_records import made_record

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Record, Store
from hvadam_bench.sweeping.engines import Job, Outcome, perform


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
