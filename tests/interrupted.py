"""Runs that end in the middle, and what they must have in common with those that do not."""

from __future__ import annotations

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Record, Store
from hvadam_bench.running.runner import Watcher


class KilledError(BaseException):
    """An end like that of a kill: nothing is saved on the way out."""


class Killer(Watcher):
    """A watcher that kills a run when it reaches each of some steps for the first time."""

    def __init__(self, *steps: int) -> None:
        self.steps = set(steps)

    def stepped(self, step: int, loss: float) -> None:
        """Kill the run if it is time to."""
        if step in self.steps:
            self.steps.remove(step)
            raise KilledError


def essence(record: Record) -> object:
    """Return all of a record that must not depend on the clock."""
    curve = [{**vars(point), "seconds": None} for point in record.curve]
    return record.status, record.reason, curve, record.test, record.artifacts


def artifacts(store: Store, config: RunConfig) -> dict[str, bytes]:
    """Return the files that a run left beside its record."""
    folder = store.artifacts_path(config)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
