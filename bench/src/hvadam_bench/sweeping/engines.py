"""Where the runs of a sweep run. An engine takes jobs and reports what came of them, no more.

Whatever happens to a worker, its job comes back exactly once: as over, crashed or refused. A trial
may be stopped as hopeless, by Optuna's pruners: it is held against the curves of its rivals that
are over, which are of the same contender on the same task with the same seed. The rule is the same
for every contender, and nobody is held against another.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Literal, NamedTuple, Protocol

from hvadam.info import usable_cores
from hvadam_bench.analysis.statistics import Metric
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.files import BusyError
from hvadam_bench.running.records import FINAL, Point, Record, Role, Store
from hvadam_bench.running.runner import PrunedError, Watcher, run
from hvadam_bench.sweeping.search import PrunerName
from hvadam_bench.terminal import plain_warnings

# Rivals that must be over before anyone is stopped, and evaluations that everyone gets.
RIVALS = 3
GRACE = 3
# For a worker to write its checkpoint when the sweep is interrupted.
PATIENCE = 10.0

Curve = tuple[float, ...]


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
        from hvadam_bench.sweeping.ray import RayEngine

        return RayEngine(store, workers, address)
    return LocalEngine(store, workers or usable_cores())


def perform(job: Job, store: Store) -> Outcome:
    """Do a job, in the process that calls."""
    watcher = Pruning(job) if job.pruner != "none" else None
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


def curve_of(record: Record) -> Curve:
    """Return what a pruner sees of a run: its validation values, evaluation by evaluation."""
    return tuple(point.valid[record.metric] for point in record.curve)


class Pruning(Watcher):
    """Ends a run that falls behind its rivals.

    With "median" it is stopped if its best value so far is worse than the median of the rivals'
    values at the same evaluation, with "halving" at rungs unless it is among the best third there.
    """

    def __init__(self, job: Job) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        if job.pruner == "median":
            pruner: Any = optuna.pruners.MedianPruner(n_startup_trials=RIVALS)
        else:
            pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=GRACE, reduction_factor=3)
        direction = "maximize" if job.metric.goal == "max" else "minimize"
        study = optuna.create_study(direction=direction, pruner=pruner)
        for curve in job.rivals:
            trial = study.ask()
            for i, value in enumerate(curve):
                trial.report(value, i)
                trial.should_prune()  # by which halving learns who passed a rung
            study.tell(trial, curve[-1])
        self._metric = job.metric
        self._enough = len(job.rivals) >= RIVALS
        self._trial = study.ask()
        self._seen = 0

    def started(self, config: RunConfig, steps: int, step: int, curve: Sequence[Point]) -> None:
        """Take up what a run that goes on has been through."""
        for point in curve:
            self._report(point)

    def evaluated(self, point: Point) -> None:
        """Stop the run here, if it is hopeless."""
        if self._report(point):
            raise PrunedError(f"{self._metric.name} fell behind its rivals at step {point.step}.")

    def _report(self, point: Point) -> bool:
        self._trial.report(point.valid[self._metric.name], self._seen)
        self._seen += 1
        return self._trial.should_prune() and self._enough and self._seen > GRACE


class LocalEngine:
    """Worker processes, started when there is something to do, that stay for job after job.

    Not a `ProcessPoolExecutor`: that one gives up all its jobs when one process is killed.
    """

    def __init__(self, store: Store, workers: int) -> None:
        self.slots = workers
        self._store = store
        self._workers: list[_Worker] = []

    def submit(self, job: Job) -> None:
        """Hand a job to an idle worker, or to a new one."""
        idle = [worker for worker in self._workers if worker.config is None]
        if not idle:
            idle = [_Worker(self._store)]
            self._workers += idle
        idle[0].start(job)

    def wait(self, seconds: float) -> Sequence[Outcome]:
        """Return what workers have sent, and who died."""
        busy = {w.connection: w for w in self._workers if w.config is not None}
        # A process that ends closes its end of the pipe, so that this wakes too.
        outcomes = [busy[ready].collect() for ready in wait(list(busy), seconds)]  # pyright: ignore[reportArgumentType]
        self._workers = [worker for worker in self._workers if not worker.dead]
        return outcomes

    def close(self) -> None:
        """Interrupt the workers, as Ctrl-C does, and wait for their checkpoints."""
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            worker.process.join(PATIENCE)
            worker.process.kill()
            worker.process.join()


class _Worker:
    """A process, the pipe to it, and the run that it is at."""

    def __init__(self, store: Store) -> None:
        # Not a fork, which would copy the threads' locks of whatever is loaded here.
        context = multiprocessing.get_context("spawn")
        self.connection, far = context.Pipe()
        self.process: Any = context.Process(target=_serve, args=(far, store), daemon=True)
        self.process.start()
        far.close()
        self.config: RunConfig | None = None
        self.dead = False

    def start(self, job: Job) -> None:
        self.config = job.config
        with suppress(OSError):  # died while idle: `collect` finds out
            self.connection.send(job)

    def collect(self) -> Outcome:
        config, self.config = self.config, None
        assert config is not None
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.dead = True
            self.process.join()
            code = self.process.exitcode
            how = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
            return Outcome(config, "crashed", f"the worker process {how}.")

    def stop(self) -> None:
        self.connection.close()  # ends it if it is idle
        if self.config is not None and self.process.is_alive():
            os.kill(self.process.pid, signal.SIGINT)


def _serve(connection: Connection, store: Store) -> None:
    """Do jobs in a worker process, until the other side hangs up or is gone."""
    # The runner turns an interrupt into a checkpoint; between runs there is nothing to save.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        with plain_warnings():
            while True:
                connection.send(perform(connection.recv(), store))
    except (EOFError, OSError, KeyboardInterrupt):
        return


def _follow_parent() -> None:
    """End with the sweep, even if that was killed: nobody would read what comes out."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
