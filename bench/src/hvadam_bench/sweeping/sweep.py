"""Studies run to their end: what is recorded is skipped, what the machine lost is tried again.

A sweep keeps no state of its own. What to run next follows from the records, so the same command
after a `kill -9` goes on where the records end, and a second time does nothing.

A run is lost if its worker is killed, memory or disk run out, or its code fails. It says nothing of
its options, so it never counts as a bad result: who stays without it chooses nothing and is not
judged, by this sweep; the next one tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, NamedTuple

from hvadam_bench import tasks
from hvadam_bench.analysis.statistics import Metric
from hvadam_bench.running import checkpoints
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import MEASURED, Record, Store
from hvadam_bench.running.runner import is_over
from hvadam_bench.sweeping.costs import Costs
from hvadam_bench.sweeping.engines import Engine, Job, Outcome
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.pruning import curve_of
from hvadam_bench.sweeping.search import Arm, Planned, Study
from hvadam_bench.sweeping.study_results import StudyResults, read_study

# Seconds from each loss of a run to its next attempt, from its checkpoint; then it stays lost.
PAUSES = (5.0, 60.0)
# The part of a run that is taken for done, at most, while it is not.
MOST = 0.95
# Between two looks at the clock while nothing happens.
TICK = 1.0


class Progress(NamedTuple):
    """How far a sweep is.

    Attributes:
        over: Runs that need no more.
        total: Runs in all, as far as is known: grids may grow.
        seconds_left: By what like runs took.
        running: What is under way.
        part: How much of a run is done of all under way together, by the same measure.
    """

    over: int
    total: int
    seconds_left: float
    running: list[RunConfig]
    part: float


class Loss(NamedTuple):
    """A run that came to no end, and was not to blame.

    Attributes:
        arm, planned: Which.
        reason: Of the last loss.
        attempts: So far.
        time: Of the last loss.
    """

    arm: Arm
    planned: Planned
    reason: str
    attempts: int
    time: float


class Sweep:
    """Studies on their way.

    Args:
        studies: What to run.
        store: Where the records are and go.
        name: Of the recipe or command, which the records keep.
        costs: What runs take; by the store's records if not given.
    """

    def __init__(
        self, studies: Sequence[Study], store: Store, name: str = "", costs: Costs | None = None
    ) -> None:
        self.name = name
        self.studies = studies
        self.ledger = Ledger(store, is_over)
        self.costs = costs or Costs(store)
        self.refused: dict[str, str] = {}  # task -> why its runs cannot start
        self.store = store
        self._arms = [arm for study in studies for arm in study.arms()]
        self._losses: dict[str, Loss] = {}
        self._running: dict[str, tuple[Arm, Planned, float]] = {}

    def run(self, engine: Engine, watch: Callable[[Progress], Any] = lambda _: None) -> None:
        """Run all that is needed. The longest first: that leaves the workers least idle at the end.

        Args:
            engine: Where.
            watch: Told of the progress now and then.
        """
        self._clear_away()
        ready = self._ready()
        while ready or self._running:
            while ready and len(self._running) < engine.slots:
                arm, planned = ready.pop(0)
                engine.submit(self._job(arm, planned))
                self._running[planned.config.key] = (arm, planned, monotonic())
            watch(self.progress(engine.slots))
            outcomes = engine.wait(TICK)
            for outcome in outcomes:
                self._settle(outcome)
            if outcomes:
                ready = self._ready()
            if not ready and not self._running:
                ready = self._again()
        watch(self.progress(engine.slots))

    @property
    def lost(self) -> list[Loss]:
        """Return the runs that came to no end, however often they were tried."""
        return list(self._losses.values())

    def results(self) -> list[StudyResults]:
        """Return what is known of each study."""
        return [read_study(study, self.ledger) for study in self.studies]

    def progress(self, slots: int) -> Progress:
        """Return how far the sweep is, if so many run at a time."""
        over, total, seconds = 0, 0, 0.0
        for arm in self._arms:
            if arm.study.task in self.refused:
                continue
            tuned = arm.tuned(self.ledger)
            tuning, judging = arm.tuning(tuned.trials), arm.judging(tuned.best or {})
            judged = [] if tuned.best is None else list(filter(self.ledger.get, judging))
            over += len(tuned.runs) + len(judged)
            total += len(tuning) + len(judging)
            # Of one contender, all that tune take as long, and all that judge.
            for runs, done in ((tuning, tuned.runs), (judging, judged)):
                seconds += (len(runs) - len(done)) * self.costs.of(runs[0]) if runs else 0.0
        now, part = monotonic(), 0.0
        for _, planned, since in self._running.values():
            cost = self.costs.of(planned.config)
            spent = min(now - since, cost)
            seconds -= spent
            part += MOST * spent / max(cost, 1e-9)
        running = [planned.config for _, planned, _ in self._running.values()]
        return Progress(over, total, max(0.0, seconds) / slots, running, part)

    def _ready(self) -> list[tuple[Arm, Planned]]:
        """Return what can run now, each run once, the longest first."""
        needed: dict[str, tuple[Arm, Planned]] = {}
        for arm in self._arms:
            if arm.study.task not in self.refused:
                for planned in arm.needed(self.ledger):
                    needed.setdefault(planned.config.key, (arm, planned))
        busy = {*self._running, *self._losses}
        idle = [pair for key, pair in needed.items() if key not in busy]
        return sorted(idle, key=lambda pair: -self.costs.of(pair[1].config))

    def _again(self) -> list[tuple[Arm, Planned]]:
        """Return a lost run to try again, if one has attempts left, once its time has come.

        When all else is over and alone: so it has all the memory, and a full disk some time.
        """
        left = [
            loss
            for loss in self._losses.values()
            if loss.attempts <= len(PAUSES) and loss.arm.study.task not in self.refused
        ]
        if not left:
            return []
        loss = min(left, key=lambda one: (one.attempts, one.time))
        sleep(max(0.0, loss.time + PAUSES[loss.attempts - 1] - monotonic()))
        return [(loss.arm, loss.planned)]

    def _clear_away(self) -> None:
        """Delete the checkpoints that a kill left beside records which are over."""
        ours = {(arm.study.task, arm.entry.contender) for arm in self._arms}
        for record in self.store.beside_checkpoints():
            config = record.config
            if (config.task, config.contender) in ours and is_over(record):
                checkpoints.remove(self.store.checkpoint_path(config))

    def _job(self, arm: Arm, planned: Planned) -> Job:
        task = tasks.get(planned.config.task)
        job = Job(planned.config, Metric(task.metric, task.goal), self.name, planned.role)
        if arm.study.pruner == "none" or planned.role == "judged":
            return job
        over = arm.rivals(planned.config, self.ledger)
        rivals = tuple(curve_of(run) for run in over if run.status in (*MEASURED, "pruned"))
        return job._replace(pruner=arm.study.pruner, rivals=rivals)

    def _settle(self, outcome: Outcome) -> None:
        config = outcome.config
        arm, planned, _ = self._running.pop(config.key)
        if outcome.kind == "refused":
            self.refused[config.task] = outcome.reason
            return
        record = self.ledger.get(config)
        if record is not None:
            self.costs.learn(record)
            self._losses.pop(config.key, None)
            return
        before = self._losses.get(config.key)
        attempts = 1 if before is None else before.attempts + 1
        reason = self._reason(planned, outcome)
        self._losses[config.key] = Loss(arm, planned, reason, attempts, monotonic())

    def _reason(self, planned: Planned, outcome: Outcome) -> str:
        """Return why a run is lost; what left no record of it gets one, for reports."""
        config = planned.config
        record = self.store.get(config)
        if outcome.kind == "over" and record is not None:
            return f"{record.status.replace('_', ' ')}, {record.reason}"
        if record is None:
            task = tasks.get(config.task)
            record = Record(
                *(config, "failed", outcome.reason, (), {}, 0.0, 0.0, {}),
                title=task.title,
                metric=task.metric,
                goal=task.goal,
                study=self.name,
                role=planned.role,
            )
            with suppress(OSError):  # such as a full disk, which may be what it was lost to
                self.store.put(record)
        return outcome.reason
