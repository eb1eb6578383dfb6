"""Where the runs of a sweep run. An engine takes jobs and tells how they went; it decides nothing.

Whatever happens to a worker, its job comes back exactly once: as over, crashed or refused.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from hvadam.bench.config import RunConfig
from hvadam.bench.pruning import Curve, Pruning
from hvadam.bench.records import Store
from hvadam.bench.search import PrunerName
from hvadam.bench.stats import Metric


class Job(NamedTuple):
    """A run to make, and what may stop it early."""

    config: RunConfig
    metric: Metric
    pruner: PrunerName = "none"
    rivals: tuple[Curve, ...] = ()


class Outcome(NamedTuple):
    """What became of a job.

    Attributes:
        config: Of the job.
        kind: "over": the store has a record, whatever its status. "crashed": the worker died or
            could not write. "refused": the run cannot start as configured.
        reason: Why, unless it is over.
    """

    config: RunConfig
    kind: Literal["over", "crashed", "refused"]
    reason: str = ""


class Engine(Protocol):
    """Somewhere to run jobs, `slots` at a time."""

    @property
    def slots(self) -> int:
        """How many jobs may be under way."""
        ...

    def submit(self, job: Job) -> None:
        """Start a job. At most `slots` are under way; the caller counts."""
        ...

    def wait(self, seconds: float) -> Sequence[Outcome]:
        """What came of jobs since the last call; waits for the first, but not longer than that."""
        ...

    def close(self) -> None:
        """Stop everything. Runs that are under way keep their checkpoints."""
        ...


def make_engine(name: str, store: Store, workers: int | None, address: str | None = None) -> Engine:
    """An engine by its name.

    Args:
        name: "local" for processes on this machine, "ray" for a cluster.
        store: Where the records go.
        workers: Runs at a time; None for as many as there are cores.
        address: Of the cluster; None to start one on this machine.
    """
    if name == "ray":
        from hvadam.bench.engines.ray import RayEngine

        return RayEngine(store, workers, address)
    from hvadam.bench.engines.local import LocalEngine

    return LocalEngine(store, workers or os.cpu_count() or 1)


def perform(job: Job, store: Store) -> Outcome:
    """Do a job, in the process that calls."""
    from hvadam.bench.runner import run

    watcher = None
    if job.pruner != "none":
        watcher = Pruning(job.pruner, job.metric, job.rivals)
    try:
        run(job.config, store, watcher=watcher)
    except OSError as error:
        return Outcome(job.config, "crashed", str(error))
    except Exception as error:  # the runner has no record of what it cannot start
        return Outcome(job.config, "refused", f"{error}")
    return Outcome(job.config, "over")
