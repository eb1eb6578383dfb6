"""Contests run to their end: what is recorded is skipped, what the machine lost is tried again.

A sweep keeps no state of its own. What to run next follows from the records, so the same command
after a `kill -9` goes on where the records end, and a second time does nothing.

A run is lost if its worker is killed, memory or disk run out, or its code fails. It says nothing of
its options, so it never counts as a bad result: who stays without it chooses nothing and is not
judged, by this sweep; the next one tries again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, NamedTuple

from hvadam_bench import tasks
from hvadam_bench.analysis.statistics import Metric
from hvadam_bench.running import checkpoints
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import (
    FINAL,
    MEASURED,
    Contents,
    Record,
    Store,
    UnreadableError,
)
from hvadam_bench.running.runner import discarded, is_over, outdated, recorded
from hvadam_bench.running.sources import told
from hvadam_bench.sweeping.contest_results import ContestResults, read_contest
from hvadam_bench.sweeping.costs import Costs
from hvadam_bench.sweeping.engines import Engine, Job, Outcome, curve_of
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.search import Arm, Contest, Planned

# Seconds from each loss of a run to its next attempt, from its checkpoint; then it stays lost.
PAUSES = (5.0, 60.0)
# The part of a run that is taken for done, at most, while it is not.
MOST = 0.95
# Between two looks at the clock while nothing happens.
TICK = 1.0
# Between two looks whether a run that another process makes is over, or left to us.
ELSEWHERE_SECONDS = 5.0


class Progress(NamedTuple):
    """How far a sweep is."""

    over: int  # runs that need no more
    total: int  # runs in all, as far as is known: grids may grow
    seconds_left: float  # by what like runs took
    running: list[RunConfig]
    part: float  # how much of a run is done of all under way together, by the same measure
    elsewhere: int = 0  # runs that are waited for, as other processes make them


class Loss(NamedTuple):
    """A run that the machine lost, with the reason and the time of the last loss."""

    arm: Arm
    planned: Planned
    reason: str
    attempts: int
    time: float


class Sweep:
    """Contests on their way.

    Args:
        contests: What to run.
        store: Where the records are and go.
        name: Of the recipe or command, which the records keep.
        costs: What runs take; by the store's records if not given.
    """

    def __init__(
        self, contests: Sequence[Contest], store: Store, name: str = "", costs: Costs | None = None
    ) -> None:
        self.name = name
        self.contests = contests
        self.ledger = Ledger(store, recorded)
        contents = store.contents({contest.task for contest in contests} if costs else None)
        self.costs = costs or Costs(contents.records)
        self.refused: dict[str, str] = {}  # task -> why its runs cannot start
        self.store = store
        self._arms = [arm for contest in contests for arm in contest.arms()]
        self._over: list[RunConfig] = []  # what was recorded before
        self.discarded = self._discarded(contents)  # what of the store does not count, in words
        self._losses: dict[str, Loss] = {}
        self._running: dict[str, tuple[Arm, Planned, float]] = {}
        self._elsewhere: dict[str, float] = {}  # what others make -> when that was last seen

    def run(self, engine: Engine, watch: Callable[[Progress], Any] = lambda _: None) -> None:
        """Run all that is needed. The longest first: that leaves the workers least idle at the end.

        Args:
            engine: Where.
            watch: Told of the progress now and then.
        """
        with suppress(OSError):  # a full disk shows in the runs
            for contest in self.contests:
                self.store.note_reference(contest.task, contest.scale, contest.reference)
        for config in self._over:
            checkpoints.remove(self.store.checkpoint_path(config))  # which a kill left beside it
        ready = self._ready()
        while ready or self._running or self._elsewhere:
            while ready and len(self._running) < engine.slots:
                arm, planned = ready.pop(0)
                engine.submit(self._job(arm, planned))
                self._running[planned.config.key] = (arm, planned, monotonic())
            watch(self.progress(engine.slots))
            outcomes = engine.wait(TICK)
            for outcome in outcomes:
                self._settle(outcome)
            if not self._running and self._elsewhere:
                sleep(TICK)
            if outcomes or self._elsewhere:
                ready = self._ready()
            if not ready and not self._running and not self._elsewhere:
                ready = self._again()
        watch(self.progress(engine.slots))

    @property
    def lost(self) -> list[Loss]:
        """Return the runs that did not end, however often they were tried."""
        return list(self._losses.values())

    def results(self) -> list[ContestResults]:
        """Return what is known of each contest."""
        return [read_contest(contest, self.ledger) for contest in self.contests]

    def progress(self, slots: int) -> Progress:
        """Return how far the sweep is, if so many run at a time."""
        over, total, seconds = 0, 0, 0.0
        for arm in self._arms:
            if arm.contest.task in self.refused:
                continue
            tuned = arm.tuned(self.ledger)
            tuning, judging = arm.tuning(tuned.trials), arm.judging(tuned.best or {})
            judged = [] if tuned.best is None else list(filter(self.ledger.get, judging))
            over += len(tuned.runs) + len(judged)
            total += len(tuning) + len(judging)
            # All runs of one contender that tune take as long, and so do all that judge.
            for runs, done in ((tuning, tuned.runs), (judging, judged)):
                seconds += (len(runs) - len(done)) * self.costs.of(runs[0]) if runs else 0.0
        now, part = monotonic(), 0.0
        for _, planned, since in self._running.values():
            cost = self.costs.of(planned.config)
            spent = min(now - since, cost)
            seconds -= spent
            part += MOST * spent / max(cost, 1e-9)
        running = [planned.config for _, planned, _ in self._running.values()]
        left = max(0.0, seconds) / slots
        return Progress(over, total, left, running, part, len(self._elsewhere))

    def _ready(self) -> list[tuple[Arm, Planned]]:
        """Return what can run now, each run once, the longest first."""
        needed: dict[str, tuple[Arm, Planned]] = {}
        for arm in self._arms:
            if arm.contest.task not in self.refused:
                for planned in arm.needed(self.ledger):
                    needed.setdefault(planned.config.key, (arm, planned))
        now = monotonic()
        self._elsewhere = {key: at for key, at in self._elsewhere.items() if key in needed}
        made = {key for key, at in self._elsewhere.items() if now - at < ELSEWHERE_SECONDS}
        busy = {*self._running, *self._losses, *made}
        idle = [pair for key, pair in needed.items() if key not in busy]
        return sorted(idle, key=lambda pair: -self.costs.of(pair[1].config))

    def _again(self) -> list[tuple[Arm, Planned]]:
        """Return a lost run to try again, if one has attempts left, once its time has come.

        When all else is over and alone: so it has all the memory, and a full disk some time.
        """
        left = [
            loss
            for loss in self._losses.values()
            if loss.attempts <= len(PAUSES) and loss.arm.contest.task not in self.refused
        ]
        if not left:
            return []
        loss = min(left, key=lambda one: (one.attempts, one.time))
        sleep(max(0.0, loss.time + PAUSES[loss.attempts - 1] - monotonic()))
        return [(loss.arm, loss.planned)]

    def _discarded(self, contents: Contents) -> list[str]:
        """Return what of a store cannot be read, and which results would be others today."""
        old: Counter[tuple[str, str]] = Counter()
        for record in contents.records:
            if self._is_ours(record.config) and record.status in FINAL:
                if is_over(record):
                    self._over.append(record.config)
                else:
                    old[record.config.task, outdated(record)] += 1
        return [
            *(f"{one.fault}: it is run again if it is needed" for one in contents.unreadable),
            *(f"{told(n, task)} {why}: run again as needed" for (task, why), n in old.items()),
        ]

    def _is_ours(self, config: RunConfig) -> bool:
        """Tell whether a run is one of a contender on a task of the sweep, at its scale."""
        return any(
            (config.task, config.scale) == (arm.contest.task, arm.contest.scale)
            and config.contender == arm.entry.contender
            for arm in self._arms
        )

    def _job(self, arm: Arm, planned: Planned) -> Job:
        task = tasks.get(planned.config.task)
        job = Job(planned.config, Metric(task.metric, task.goal), self.name, planned.role)
        if arm.contest.pruner == "none" or planned.role == "judged":
            return job
        over = arm.rivals(planned.config, self.ledger)
        rivals = tuple(curve_of(run) for run in over if run.status in (*MEASURED, "pruned"))
        return job._replace(pruner=arm.contest.pruner, rivals=rivals)

    def _settle(self, outcome: Outcome) -> None:
        config = outcome.config
        arm, planned, _ = self._running.pop(config.key)
        if outcome.kind == "refused":
            self.refused[config.task] = outcome.reason
            return
        self._elsewhere.pop(config.key, None)
        if outcome.kind == "busy":
            self._elsewhere[config.key] = monotonic()
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
        if outcome.kind == "over" and not outcome.reason:  # it was edited while it ran
            return f"{discarded(config, self.store) or 'it left no record'}."
        # A full disk may be what it was lost to; what cannot be read stays.
        with suppress(OSError, UnreadableError):
            if outcome.kind == "crashed" and self.store.get(config) is None:
                task = tasks.get(config.task)
                record = Record(
                    *(config, "failed", outcome.reason, (), {}, 0.0, 0.0, {}),
                    title=task.title,
                    metric=task.metric,
                    goal=task.goal,
                    study=self.name,
                    role=planned.role,
                )
                self.store.put(record)
        return outcome.reason
