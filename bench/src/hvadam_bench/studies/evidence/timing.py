"""Timing gradient evaluations with their steps, as the comparison's runs take them.

Every contender of the two suites trains for a moment, in turns with the suite's reference, by the
runner's own steps at the settings and first learning rates of the contests. The first timed group
begins a little into the run, where L-BFGS has its full history. Where a contender hands over to
L-BFGS, both parts are timed and count by their shares of a run.

Budgets count evaluations, so that they are the same on every machine; this says what one of them
takes with the step that follows it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import Any

from hvadam_bench.contenders import get
from hvadam_bench.running import checkpoints, machine
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.runner import reproducible
from hvadam_bench.running.training import DivergedError, Training
from hvadam_bench.studies._pairs import Clock, Pair, Quartiles, divide, no_garbage_collection, race
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.sweeping.search import Arm, Contest

ROUNDS = 7  # pairs of groups for each contender
GROUP_SECONDS = 0.1  # at least, of the evaluations that are timed together
FEWEST = 3  # evaluations in a group
WARM_UP = 5  # evaluations
# Of contenders with line searches: a hundred iterations and more, which fill their history.
WARM_UP_SEARCHES = 130


class Course:
    """One training that is timed in groups of evaluations, as long as it may take.

    Attributes:
        evaluations: In a timed group, at the least: a step of L-BFGS has a hundred and more.
    """

    def __init__(self, config: RunConfig, clock: Clock) -> None:
        self._clock = clock
        checkpoints.set_seed(config.seed)
        self._training = Training(config)
        steps = self._training.problem.steps
        warm_up = WARM_UP_SEARCHES if self._training.spec.closure else WARM_UP
        seconds = self._seconds(min(warm_up, steps // 2))
        self._start = copy.deepcopy(self._training.state_dict())
        left = steps - self._training.step - 1
        wanted = math.ceil(GROUP_SECONDS / seconds) if seconds > 0 else left
        self.evaluations = max(1, min(max(wanted, FEWEST), left))

    def run(self) -> float:
        """Return the seconds of an evaluation, the mean over the next group.

        Raises:
            DivergedError: The training diverged soon after its start.
        """
        if self._training.step + self.evaluations > self._training.problem.steps:
            self._rewind()
        try:
            return self._seconds(self.evaluations)
        except DivergedError:
            self._rewind()
            return self._seconds(self.evaluations)

    def _rewind(self) -> None:
        """Go back to where the warm-up ended, and take the step that makes what loading dropped."""
        self._training.load_state_dict(copy.deepcopy(self._start))
        self._training.advance()

    def _seconds(self, evaluations: int) -> float:
        training, first = self._training, self._training.gradient_evaluations
        with no_garbage_collection():
            started = self._clock()
            while training.gradient_evaluations - first < evaluations:
                training.advance()
            return (self._clock() - started) / (training.gradient_evaluations - first)


def measure(
    studies: Mapping[str, Sequence[Contest]],
    *,
    rounds: int = ROUNDS,
    clock: Clock = perf_counter,
    on_progress: OnProgress = ignore_progress,
) -> dict[str, Any]:
    """Time the evaluations of everyone versus the reference's, task by task, on a quiet machine.

    Raises:
        ValueError: The data of a task is not here.
        DivergedError: Training diverges within a moment of its start.
    """
    about, company, found = machine.describe(), machine.Company(), {}
    share = 1 / sum(len(own) for own in studies.values())
    with reproducible(1), checkpoints.isolated(0):
        for part, own in studies.items():
            for study in own:
                times = _time(study, rounds, clock, share, on_progress)
                found[study.task] = {"part": part, "reference": study.reference, **times}
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": about,
        "alone": company.is_absent(),  # None if that is not known
        "threads": 1,
        "rounds": rounds,
        "tasks": found,
    }


def config_of(arm: Arm) -> RunConfig:
    """Return the first run of an entry, at the learning rate where its search begins."""
    first = (arm.tuner or arm).trials[0].options
    return arm.judging({**first, **arm.entry.options, "lr": first["lr"]})[0]


def _phases(config: RunConfig) -> list[tuple[float, RunConfig]]:
    """Return a run's parts that take steps of their own kind, each with its share of the run."""
    options = {**get(config.contender).defaults, **config.options}
    if "switch" not in options:
        return [(1.0, config)]
    first, second = (
        replace(config, options={**config.options, "switch": only}) for only in (1.0, 0.0)
    )
    return [(options["switch"], first), (1 - options["switch"], second)]


def _time(
    study: Contest, rounds: int, clock: Clock, share: float, on_progress: OnProgress
) -> dict[str, Any]:
    """Return the times of a contest's contenders, and of the reference over all its groups."""
    on_progress(f"{study.task}: preparing", 0.0)
    entered = {
        arm.entry.entrant: [(part, Course(one, clock)) for part, one in _phases(config_of(arm))]
        for arm in study.arms()
    }
    beside = partial(_evaluate, entered.pop(study.reference))
    pairs = [
        Pair(f"{study.task}: {name}", partial(_evaluate, courses), beside)
        for name, courses in entered.items()
    ]
    times = race(pairs, rounds, on_progress, share)
    return {
        "contenders": {
            name: {
                "evaluations": sum(course.evaluations for _, course in courses),  # in a group
                "seconds": list(own),  # of an evaluation with its share of a step, by round
                "reference_seconds": list(other),
                "milliseconds": _quartiles(1e3 * one for one in own),
                "ratio": _quartiles(divide(own, other)),
            }
            for (name, courses), (own, other) in zip(entered.items(), times, strict=True)
        },
        "reference_milliseconds": _quartiles(1e3 * one for _, other in times for one in other),
    }


def _evaluate(courses: Sequence[tuple[float, Course]]) -> float:
    """Return the seconds of an evaluation, weighted as a run would."""
    return math.fsum(share * course.run() for share, course in courses)


def _quartiles(values: Iterable[float]) -> dict[str, float]:
    return asdict(Quartiles.of(list(values)))
