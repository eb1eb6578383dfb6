"""Processes on this machine. One that is killed costs its job an attempt, and no other job."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.sweeping.engines import Job, Outcome, perform
from hvadam_bench.terminal import plain_warnings

# For a worker to write its checkpoint when the sweep is interrupted.
PATIENCE = 10.0


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
