"""Time things in pairs: the one harness of every study that has a clock.

How long something takes depends on what else the machine does, and on its clock speed meanwhile.
So nothing is timed alone:

- a *group* is as many steps as the clock needs to time them together; it gives seconds per step;
- a *pair* is a group and one of the reference, directly after each other, on copies of the same
  tensors. Which of them goes first changes from round to round, so that a machine that slows down
  favours neither;
- a *round* goes once through all pairs, so that what slows the machine for a while slows all;
- a *ratio* divides the two times of one pair. What is published are the median and the quartiles
  of the ratios over all rounds. A median time by itself moves with the machine.

What the clock sees of a group is up to whoever gives it:

- `speed`: the optimizer's step alone, each timed by itself, with new gradients in between and no
  garbage collection; with several numbers of threads, after one step that wakes them;
- `speed --jax`: all steps of the group, until their results are there;
- `speed --training`: whole training steps, and the optimizer's part of them;
- `speed --runner`: blocks of steps. The runner is always first, because it calls us in between;
- evaluation times: gradient evaluations with their share of a step, without garbage collection.

`torch.utils.benchmark` times one statement by itself. It would run that twice more before each
measurement and count what lies between two steps, and so measure something else than the ratios
that are published.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from hvadam_bench.studies._study import OnProgress, ignore_progress

T = TypeVar("T")
Clock = Callable[[], float]

MOST_STEPS = 1000  # in a group
# What a constructor, or the first steps, may raise where a contender cannot run.
REFUSALS = (ImportError, NotImplementedError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True)
class Quartiles:
    """The quartiles of the values of all rounds."""

    q1: float
    median: float
    q3: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Quartiles:
        """Work out the quartiles of some values, between them if need be."""
        return cls(*(float(q) for q in np.quantile(values, (0.25, 0.5, 0.75))))


@dataclass(frozen=True)
class Paired:
    """The times of something and of its reference, an entry per round."""

    seconds: tuple[float, ...]
    reference_seconds: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Return the time in that of the reference, per round."""
        return divide(self.seconds, self.reference_seconds)

    @property
    def ratio(self) -> Quartiles:
        """Return the quartiles of the ratios."""
        return Quartiles.of(self.ratios)


class Pair(NamedTuple, Generic[T]):
    """What is timed, and its reference: functions that run a group and return its times."""

    name: str
    own: Callable[[], T]
    reference: Callable[[], T]


def race(
    pairs: Sequence[Pair[T]],
    rounds: int,
    on_progress: OnProgress = ignore_progress,
    share: float = 1.0,
) -> list[tuple[tuple[T, ...], tuple[T, ...]]]:
    """Time all pairs, round by round; return the times of each and of its reference.

    Args:
        pairs: What is timed.
        rounds: How often.
        on_progress: Called between timed groups only, so that it disturbs none.
        share: The share of all the work that this is.
    """
    times: list[tuple[list[T], list[T]]] = [([], []) for _ in pairs]
    for number in range(rounds):
        gc.collect()
        for pair, (own, reference) in zip(pairs, times, strict=True):
            on_progress(f"{pair.name}, round {number + 1}", 0.0)
            turns = [(reference, pair.reference), (own, pair.own)]
            for found, run in reversed(turns) if number % 2 else turns:
                found.append(run())
            on_progress("", share / (rounds * len(pairs)))
    return [(tuple(own), tuple(reference)) for own, reference in times]


class Trial(Protocol):
    """A contender with what it needs to take steps, warmed up."""

    def group(self, threads: int | None) -> Any:
        """Run a group and return its times, if need be with so many threads."""

    def close(self) -> None:
        """Free memory; what was found stays."""


@dataclass(frozen=True)
class Skip:
    """A contender that cannot run here."""

    contender: str
    reason: str


class Timed(NamedTuple):
    """A trial with so many threads, and the times of its groups and of the reference's."""

    contender: str
    trial: Any
    threads: int | None
    times: tuple[tuple[Any, ...], tuple[Any, ...]]


def race_all(
    makers: Mapping[str, Callable[[], Trial]],
    beside: Trial,
    rounds: int,
    *,
    at_once: int,
    counts: Sequence[int | None] = (None,),
    doing: str = "",
    on_progress: OnProgress = ignore_progress,
    share: float = 1.0,
) -> tuple[tuple[Skip, ...], list[Timed]]:
    """Time trials versus a reference; those that refuse are skipped with their reason.

    Args:
        makers: What makes the trial of each contender.
        beside: The trial of the reference, which is closed in the end.
        rounds: How often all are timed.
        at_once: How many trials fit the memory; rounds go around within so many.
        counts: Numbers of threads; None is the one that is set.
        doing: What they are timed on.
        on_progress: Called between timed groups only.
        share: The share of all the work that this is.
    """
    skipped: list[Skip] = []
    timed: list[Timed] = []
    part, waiting = share / len(makers), iter(makers.items())
    while batch := list(islice(waiting, at_once)):
        trials: dict[str, Trial] = {}
        for name, make in batch:
            on_progress(f"{doing}: preparing {name}", 0.0)
            try:
                trials[name] = make()
            except REFUSALS as error:
                skipped.append(Skip(name, " ".join(str(error).split())))
                on_progress("", part)
        who = [(name, trial, count) for name, trial in trials.items() for count in counts]
        pairs = [
            Pair(f"{doing}: {name}", partial(trial.group, count), partial(beside.group, count))
            for name, trial, count in who
        ]
        times = race(pairs, rounds, on_progress, part * len(trials))
        timed += [Timed(*one, own) for one, own in zip(who, times, strict=True)]
        for trial in trials.values():
            trial.close()
    beside.close()
    return tuple(skipped), timed


def warm_up(run: Callable[[int], float], steps: int, group_seconds: float) -> int:
    """Take single steps to warm up, and return how many make a group of so many seconds.

    Args:
        run: Takes so many steps and returns seconds per step.
        steps: How many to take; the faster of the last two counts.
        group_seconds: What a group should take at the least.
    """
    fastest = min([run(1) for _ in range(steps)][-2:])
    wanted = group_seconds / fastest if fastest > 0 else MOST_STEPS
    return min(max(math.ceil(wanted), 1), MOST_STEPS)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Let Python's garbage collector rest meanwhile."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def divide(own: Sequence[float], other: Sequence[float]) -> tuple[float, ...]:
    """Return the ratios of two times, round by round."""
    return tuple(a / b for a, b in zip(own, other, strict=True))
