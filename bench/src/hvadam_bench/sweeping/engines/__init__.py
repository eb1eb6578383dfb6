"""Where the runs of a sweep run. An engine takes jobs and tells how they went; it decides nothing.

Whatever happens to a worker, its job comes back exactly once: as over, crashed or refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from hvadam.info import usable_cores
from hvadam_bench.analysis.statistics import Metric
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.files import BusyError
from hvadam_bench.running.records import FINAL, Role, Store
from hvadam_bench.sweeping.pruning import Curve, Pruning
from hvadam_bench.sweeping.search import PrunerName


class Job(NamedTuple):
    """A run to make, what for, and what may stop it early."""

    config: RunConfig
    metric: Metric
    study: str = ""
    role: Role = "judged"
    pruner: PrunerName = "none"
    rivals: tuple[Curve, ...] = ()


class Outcome(NamedTuple):
    """What became of a job.

    Attributes:
        config: Of the job.
        kind: "over": the run ended, whatever its status. "crashed": the worker died or could not
            write. "refused": the run cannot start as configured. "busy": another process makes it.
        reason: Why it has no end; empty if it has one.
    """

    config: RunConfig
    kind: Literal["over", "crashed", "refused", "busy"]
    reason: str = ""


class Engine(Protocol):
    """Somewhere to run jobs, `slots` at a time."""

    @property
    def slots(self) -> int:
        """Return how many jobs may be under way."""
        ...

    def submit(self, job: Job) -> None:
        """Start a job. At most `slots` are under way; the caller counts."""
        ...

    def wait(self, seconds: float) -> Sequence[Outcome]:
        """Return what came of jobs since the last call; wait for the first, but not for ever."""
        ...

    def close(self) -> None:
        """Stop everything. Runs that are under way keep their checkpoints."""
        ...


def make_engine(name: str, store: Store, workers: int | None, address: str | None = None) -> Engine:
    """Return an engine by its name.

    Args:
        name: "local" for processes on this machine, "ray" for a cluster.
        store: Where the records go.
        workers: Runs at a time; None for as many as there are cores to use.
        address: Of the cluster; None to start one on this machine.
    """
    if name == "ray":
        from hvadam_bench.sweeping.engines.ray import RayEngine

        return RayEngine(store, workers, address)
    from hvadam_bench.sweeping.engines.local import LocalEngine

    return LocalEngine(store, workers or usable_cores())


def perform(job: Job, store: Store) -> Outcome:
    """Do a job, in the process that calls."""
    from hvadam_bench.running.runner import run

    watcher = None
    if job.pruner != "none":
        watcher = Pruning(job.pruner, job.metric, job.rivals)
    try:
        record = run(job.config, store, study=job.study, role=job.role, watcher=watcher)
    except BusyError as error:
        return Outcome(job.config, "busy", f"{error}")
    except OSError as error:
        why = getattr(error.__cause__, "strerror", None) or error.strerror or error
        return Outcome(job.config, "crashed", f"its record cannot be written: {why}.")
    except Exception as error:  # the runner has no record of what it cannot start
        return Outcome(job.config, "refused", f"{error}")
    lost = "" if record.status in FINAL else f"{record.status.replace('_', ' ')}, {record.reason}"
    return Outcome(job.config, "over", lost)
