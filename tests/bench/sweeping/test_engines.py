from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from made_records import made_record

from hvadam_bench.analysis.statistics import Metric
from hvadam_bench.running import checkpoints
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Point, Store
from hvadam_bench.running.runner import PrunedError
from hvadam_bench.sweeping.engines import (
    GRACE,
    Engine,
    Job,
    LocalEngine,
    Outcome,
    Pruning,
    curve_of,
    make_engine,
    perform,
)
from hvadam_bench.sweeping.search import Contest, Entry
from hvadam_bench.sweeping.sweep import Sweep

ACCURACY = Metric("accuracy", "max")


def job(seed: int = 0, epochs: int = 2, contender: str = "adam", **options: float) -> Job:
    """Short enough for a test; with many epochs, long enough to be killed."""
    settings = {"epochs": epochs}
    return Job(RunConfig("digits_mlp", contender, "smoke", seed, options, settings), ACCURACY)


def collect(engine: Engine, count: int) -> list[Outcome]:
    outcomes: list[Outcome] = []
    end = time.monotonic() + 300
    while len(outcomes) < count:
        assert time.monotonic() < end, "waited too long"
        outcomes += engine.wait(1.0)
    return outcomes


def wait_for(path: Path) -> None:
    end = time.monotonic() + 300
    while not path.exists():
        assert time.monotonic() < end, f"no {path}"
        time.sleep(0.02)


def test_what_cannot_start_is_refused_with_the_reason(tmp_path: Path) -> None:
    store = Store(tmp_path)
    config = RunConfig("digits_mlp", "adam", "galaxy")
    outcome = perform(Job(config, ACCURACY), store)
    assert outcome.kind == "refused"
    assert "digits_mlp has no scale 'galaxy'" in outcome.reason
    assert "has no option 'gama'" in perform(job(contender="hvadam", gama=0.1), store).reason
    assert list(store) == []


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs an affinity to set")
def test_there_are_as_many_workers_as_cores_that_may_be_used(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert make_engine("local", Store(tmp_path), None).slots == 1
        assert make_engine("local", Store(tmp_path), 3).slots == 3
    finally:
        os.sched_setaffinity(0, before)
    assert make_engine("local", Store(tmp_path), None).slots == len(before)


def curve(end: float) -> tuple[float, ...]:
    """Ten evaluations on the way to an end."""
    return tuple(end * (1 - math.exp(-i)) for i in range(11))


def stopped_after(pruner: Pruning, values: Sequence[float]) -> int | None:
    """The evaluation at which a run is stopped, if it is."""
    for i, value in enumerate(values):
        try:
            pruner.evaluated(Point(i, i, 0.0, None, {"accuracy": value}))
        except PrunedError:
            return i
    return None


@pytest.mark.parametrize("name", ["median", "halving"])
def test_pruners_stop_the_hopeless_and_nobody_else(name: str) -> None:
    rivals = [curve(end) for end in (0.5, 0.6, 0.7, 0.8)]

    def pruning(others: Sequence[tuple[float, ...]] = rivals) -> Pruning:
        return Pruning(job()._replace(pruner=name, rivals=tuple(others)))  # pyright: ignore[reportArgumentType]

    hopeless = stopped_after(pruning(), curve(0.2))
    assert hopeless is not None
    assert hopeless >= GRACE
    assert stopped_after(pruning(), curve(0.9)) is None
    assert stopped_after(pruning(rivals[:2]), curve(0.2)) is None  # too few to tell


def test_a_resumed_run_is_held_against_its_rivals_from_where_it_was() -> None:
    rivals = tuple(curve(end) for end in (0.5, 0.6, 0.7))
    past = [Point(i, i, 0.0, None, {"accuracy": value}) for i, value in enumerate(curve(0.2)[:6])]
    pruning = Pruning(job()._replace(pruner="median", rivals=rivals))
    pruning.started(job().config, 10, 5, past)
    assert stopped_after(pruning, curve(0.2)[6:]) == 0


def test_a_pruned_run_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path)
    rivals = tuple(curve_of(made_record(curve=curve(100.0))) for _ in range(3))
    hopeless = job(lr=1e-9)._replace(pruner="median", rivals=rivals)
    assert perform(hopeless, store).kind == "over"
    [record] = store
    assert record.status == "pruned"
    assert record.reason.startswith("accuracy fell behind its rivals at step ")
    assert 0 < len(record.curve) < 11
    assert record.test == {}


@pytest.mark.slow
def test_a_killed_worker_costs_its_job_an_attempt_and_no_other(tmp_path: Path) -> None:
    store = Store(tmp_path / "engine")
    engine = LocalEngine(store, 2)
    long, short = job(1, epochs=100), job(2)
    try:
        engine.submit(long)
        engine.submit(short)
        wait_for(store.checkpoint_path(long.config))
        victim = next(w for w in engine._workers if w.config == long.config)
        os.kill(victim.process.pid, signal.SIGKILL)
        outcomes = {outcome.config.seed: outcome for outcome in collect(engine, 2)}
        assert outcomes[1].kind == "crashed"
        assert outcomes[1].reason == "the worker process was killed by signal 9."
        assert outcomes[2].kind == "over"
        # The same job again goes on from its checkpoint, in a new process.
        assert store.checkpoint_path(long.config).exists()
        engine.submit(long)
        assert collect(engine, 1) == [Outcome(long.config, "over")]
    finally:
        engine.close()
    whole = Store(tmp_path / "whole")
    perform(long, whole)
    resumed, unbroken = store.get(long.config), whole.get(long.config)
    assert resumed is not None
    assert unbroken is not None
    assert [p.valid for p in resumed.curve] == [p.valid for p in unbroken.curve]
    assert resumed.test == unbroken.test


@pytest.mark.slow
def test_closing_leaves_checkpoints_and_no_processes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    engine = LocalEngine(store, 1)
    endless = job(epochs=10_000)
    path = store.checkpoint_path(endless.config)
    engine.submit(endless)
    wait_for(path)
    engine.close()
    assert not any(worker.process.is_alive() for worker in engine._workers)
    content = checkpoints.load(path)
    assert content is not None
    # Evaluations make checkpoints, and so did the interrupt.
    assert content["training"]["step"] % 16_000 != 0


class Counting:
    """An engine that passes everything on, and counts."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.submitted: Counter[str] = Counter()
        self.came: Counter[str] = Counter()

    @property
    def slots(self) -> int:
        return self.engine.slots

    def submit(self, job: Job) -> None:
        self.submitted[job.config.key] += 1
        self.engine.submit(job)

    def wait(self, seconds: float) -> Sequence[Outcome]:
        outcomes = self.engine.wait(seconds)
        self.came.update(outcome.config.key for outcome in outcomes)
        return outcomes

    def close(self) -> None:
        self.engine.close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Ray's test cluster needs a Unix")
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_ray_node_that_dies_loses_no_run_and_doubles_none(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    store = Store(tmp_path)
    study = Contest(
        "digits_mlp", [Entry("adam")], "smoke", settings={"epochs": 200}, trials=3, seeds=4
    )
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        mortal = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        engine = Counting(make_engine("ray", store, None, cluster.address))
        assert engine.slots == 2
        sweep = Sweep([study], store)
        killed = []

        def kill_when_busy(progress: object) -> None:
            # Two runs that are under way are one on each node.
            if not killed and len(list(store.folder.rglob("*.checkpoint"))) == 2:
                cluster.remove_node(mortal, allow_graceful=False)
                killed.append(mortal)

        sweep.run(engine, kill_when_busy)
        engine.close()
    finally:
        cluster.shutdown()
    assert killed
    [result] = sweep.results()
    assert result.results is not None
    adam = result.results.contenders["adam"]
    assert len(adam.judged) == 4
    keys = [record.config.key for record in store]
    assert {record.status for record in store} == {"done"}
    assert len(keys) == len(set(keys)) == len(adam.trials) + 4
    assert set(engine.came.values()) == {1}
    assert engine.submitted == engine.came
