"""Runs that end in the middle, and what they must have in common with those that do not."""

from __future__ import annotations

from hvadam.bench.config import RunConfig
from hvadam.bench.records import Record, Store
from hvadam.bench.runner import Watcher


class KilledError(BaseException):
    """Ends a run like a kill: nothing is saved on the way out."""


class Killer(Watcher):
    """Kills a run when it reaches each of some steps for the first time."""

    def __init__(self, *steps: int) -> None:
        self.steps = set(steps)

    def stepped(self, step: int, loss: float) -> None:
        if step in self.steps:
            self.steps.remove(step)
            raise KilledError


def essence(record: Record) -> object:
    """All that must not depend on the clock."""
    curve = [{**vars(point), "seconds": None} for point in record.curve]
    return record.status, record.reason, curve, record.test, record.artifacts


def artifacts(store: Store, config: RunConfig) -> dict[str, bytes]:
    """The files that a run left beside its record."""
    folder = store.artifacts_path(config)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
