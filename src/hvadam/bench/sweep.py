"""Studies run to their end: what is recorded is skipped, what crashed is retried once.

A sweep keeps no state of its own. What to run next follows from the records, so the same command
after a `kill -9` goes on where the records end, and a second time does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, NamedTuple

from hvadam.bench import tasks
from hvadam.bench.config import RunConfig
from hvadam.bench.costs import Costs
from hvadam.bench.engines import Engine, Job, Outcome
from hvadam.bench.pruning import curve_of
from hvadam.bench.records import MEASURED, Record, Store
from hvadam.bench.runner import is_over
from hvadam.bench.search import Arm, Entry, Known, Study, Tuned
from hvadam.bench.stats import TUNING_SEED, Metric

# A run that does not get there is run again once, from its checkpoint; then it counts as failed.
ATTEMPTS = 2
# Between two looks at the clock while nothing happens.
TICK = 1.0


class Progress(NamedTuple):
    """How far a sweep is.

    Attributes:
        over: Runs that need no more.
        total: Runs in all, as far as is known: grids may grow.
        seconds_left: By what like runs took.
        running: What is under way.
    """

    over: int
    total: int
    seconds_left: float
    running: list[RunConfig]


class Result(NamedTuple):
    """What came of one entry of a study.

    Attributes:
        study, entry: Which.
        tuned: Its trials and the choice among them.
        runs: The runs that judge the choice.
    """

    study: Study
    entry: Entry
    tuned: Tuned
    runs: list[Record]

    @property
    def tuning_examples(self) -> int:
        """What the choice cost."""
        return sum(run.curve[-1].examples for run in self.tuned.runs if run.curve)


class Ledger(Known):
    """The runs that need not run again: recorded, or given up by this sweep."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._over: dict[str, Record] = {}

    def get(self, config: RunConfig) -> Record | None:
        """The record of a run that is over."""
        if config.key not in self._over:
            record = self._store.get(config)
            if record is None or not is_over(record):
                return None
            self._over[config.key] = record
        return self._over[config.key]

    def give_up(self, config: RunConfig, reason: str) -> None:
        """Count a run as failed, for this sweep; the next one tries again."""
        record = self._store.get(config)
        if record is None:
            task = tasks.get(config.task)
            nothing = Record(config, "failed", reason, (), {}, 0.0, 0.0, {})
            record = replace(nothing, title=task.title, metric=task.metric, goal=task.goal)
            self._store.put(record)
        self._over[config.key] = record


class Sweep:
    """Studies on their way.

    Args:
        studies: What to run.
        store: Where the records are and go.
        costs: What runs take; by the store's records if not given.
    """

    def __init__(self, studies: Sequence[Study], store: Store, costs: Costs | None = None) -> None:
        self.ledger = Ledger(store)
        self.costs = costs or Costs(store)
        self.refused: dict[str, str] = {}  # task -> why its runs cannot start
        self._arms = [arm for study in studies for arm in study.arms()]
        self._attempts: dict[str, int] = {}
        self._running: dict[str, tuple[RunConfig, float]] = {}

    def run(self, engine: Engine, watch: Callable[[Progress], Any] = lambda _: None) -> None:
        """Run all that is needed. The longest first: that leaves the workers least idle at the end.

        Args:
            engine: Where.
            watch: Told of the progress now and then.
        """
        ready = self._ready()
        while ready or self._running:
            while ready and len(self._running) < engine.slots:
                arm, config = ready.pop(0)
                engine.submit(self._job(arm, config))
                self._running[config.key] = (config, monotonic())
            watch(self.progress(engine.slots))
            outcomes = engine.wait(TICK)
            for outcome in outcomes:
                self._settle(outcome)
            if outcomes:
                ready = self._ready()
        watch(self.progress(engine.slots))

    def results(self) -> list[Result]:
        """What is known of each entry."""
        found: list[Result] = []
        for arm in self._arms:
            tuned = arm.tuned(self.ledger)
            configs = [] if tuned.best is None else arm.final(tuned.best)
            runs = [run for run in map(self.ledger.get, configs) if run is not None]
            found.append(Result(arm.study, arm.entry, tuned, runs))
        return found

    def progress(self, slots: int) -> Progress:
        """How far it is, if so many run at a time."""
        over, total, seconds = 0, 0, 0.0
        for arm in self._arms:
            if arm.study.task in self.refused:
                continue
            tuned = arm.tuned(self.ledger)
            judging = [] if tuned.best is None else arm.final(tuned.best)
            done = len(tuned.runs) + sum(self.ledger.get(c) is not None for c in judging)
            runs = arm.runs + tuned.extensions * arm.study.tuning_seeds
            over += done
            total += runs
            seconds += (runs - done) * self.costs.of(arm.final({})[0])
        now = monotonic()
        for config, since in self._running.values():
            seconds -= min(now - since, self.costs.of(config))
        running = [config for config, _ in self._running.values()]
        return Progress(over, total, max(0.0, seconds) / slots, running)

    def _ready(self) -> list[tuple[Arm, RunConfig]]:
        """What can run now, each run once, the longest first."""
        needed: dict[str, tuple[Arm, RunConfig]] = {}
        for arm in self._arms:
            if arm.study.task not in self.refused:
                for config in arm.needed(self.ledger):
                    needed.setdefault(config.key, (arm, config))
        idle = [pair for key, pair in needed.items() if key not in self._running]
        return sorted(idle, key=lambda pair: -self.costs.of(pair[1]))

    def _job(self, arm: Arm, config: RunConfig) -> Job:
        task = tasks.get(config.task)
        metric = Metric(task.metric, task.goal)
        if arm.study.pruner == "none" or config.seed < TUNING_SEED:
            return Job(config, metric)
        over = arm.rivals(config, self.ledger)
        rivals = tuple(curve_of(run) for run in over if run.status in (*MEASURED, "pruned"))
        return Job(config, metric, arm.study.pruner, rivals)

    def _settle(self, outcome: Outcome) -> None:
        config = outcome.config
        del self._running[config.key]
        if outcome.kind == "refused":
            self.refused[config.task] = outcome.reason
            return
        record = self.ledger.get(config)
        if record is not None:
            self.costs.learn(record)
            return
        self._attempts[config.key] = self._attempts.get(config.key, 0) + 1
        if self._attempts[config.key] >= ATTEMPTS:
            self.ledger.give_up(config, outcome.reason)
