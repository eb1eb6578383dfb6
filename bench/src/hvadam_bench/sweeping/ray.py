"""The CPUs of a Ray cluster. Ray itself retries what dies with its worker or its node."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hvadam.info import usable_cores
from hvadam_bench.registry import PLUGINS
from hvadam_bench.running.records import Record, Store
from hvadam_bench.sweeping.engines import Job, Outcome, perform

# How often Ray tries again when a run's worker or node died.
RETRIES = 2


class RayEngine:
    """One CPU of a cluster for each run.

    The nodes need hvadam, the data under their own `HVADAM_DATA`, and plugins at the same place as
    here. If the store is in a folder that they all see, an interrupted run goes on from its
    checkpoint on any node; if not, it starts over elsewhere. Records come back either way.

    Args:
        store: Where the records go.
        workers: How many runs at a time; all CPUs of the cluster if None.
        address: Of the cluster's head, "auto" for the one this machine belongs to; a new cluster of
            this machine alone if None.
    """

    def __init__(
        self, store: Store, workers: int | None = None, address: str | None = None
    ) -> None:
        import ray

        plugins = {PLUGINS: os.environ[PLUGINS]} if PLUGINS in os.environ else {}
        ray.init(
            address=address,
            num_cpus=usable_cores() if address is None else None,
            runtime_env={"env_vars": plugins},
            log_to_driver=False,
            ignore_reinit_error=True,
        )
        self._ray: Any = ray
        self._store = store
        self._workers = workers
        self._perform: Any = ray.remote(num_cpus=1, max_retries=RETRIES)(_remote)
        self._jobs: dict[Any, Job] = {}

    @property
    def slots(self) -> int:
        """Return how many CPUs the cluster has now, or as many as asked for."""
        cpus = int(self._ray.cluster_resources().get("CPU", 1))
        return max(1, cpus if self._workers is None else min(cpus, self._workers))

    def submit(self, job: Job) -> None:
        """Hand a job to the cluster."""
        packed = self._store.packed and self._store.packed.resolve()
        store = Store(self._store.folder.resolve(), packed)
        self._jobs[self._perform.remote(job, store)] = job

    def wait(self, seconds: float) -> Sequence[Outcome]:
        """Return what has come back."""
        if not self._jobs:
            return []
        ready, _ = self._ray.wait(list(self._jobs), timeout=seconds)
        return [self._collect(reference) for reference in ready]

    def close(self) -> None:
        """Cancel what runs, and leave the cluster."""
        for reference in self._jobs:
            self._ray.cancel(reference, force=True)
        self._ray.shutdown()

    def _collect(self, reference: Any) -> Outcome:
        job = self._jobs.pop(reference)
        try:
            outcome, record, artifacts = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return Outcome(job.config, "crashed", f"{type(error).__name__}: {error}".split("\n")[0])
        if record is not None and self._store.get(job.config) != record:
            self._store.put(record, artifacts)
        return outcome


def _remote(job: Job, store: Store) -> tuple[Outcome, Record | None, dict[str, bytes]]:
    """Do a job on a node, which may not share the folder: its record comes back with its files."""
    outcome, record = perform(job, store), store.get(job.config)
    beside = store.artifacts_path(job.config)
    names = record.artifacts if record is not None else ()
    return outcome, record, {name: (beside / name).read_bytes() for name in names}
