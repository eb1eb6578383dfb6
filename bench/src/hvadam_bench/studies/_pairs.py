"""Time things in pairs: the one harness of every study that has a clock.

How long something takes depends on what else the machine does, and on its clock speed meanwhile.
So nothing is timed alone:

- a *group* is as many steps as the clock needs to time them together; it gives seconds per step;
- a *pair* is a group and one of the reference, directly after each other, on copies of the same
  tensors. Which goes first changes from round to round: a machine that slows down favours neither;
- a *round* goes once through all pairs, so that what slows the machine for a while slows all;
- a *ratio* divides the two times of one pair. What is published are the median and the quartiles
  of the ratios over all rounds. A median time by itself moves with the machine.

`torch.utils.benchmark` would run a statement twice more before each measurement and count what lies
between two steps, and so measure something else than the ratios that are published.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from hvadam_bench.studies._study import OnProgress, ignore_progress

T = TypeVar("T")
Clock = Callable[[], float]

WARM_UP = 3  # steps
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

    The progress of this `share` of all the work is reported between timed groups only.
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
    """A contender with what it needs to take steps, warmed up.

    Attributes:
        facts: What its row says besides the times; JSON can hold it.
    """

    facts: dict[str, Any]

    def group(self, threads: int | None) -> dict[str, float]:
        """Run a group, if need be with so many threads; return its "seconds", and others."""
        ...

    def close(self) -> None:
        """Free memory; the facts stay."""


class Field(NamedTuple):
    """Contenders on the same tensors or network.

    Attributes:
        about: Its "name", and what else is to be kept of it; JSON can hold it.
        cost: What it takes, of which only the proportion to the others' counts.
        reference: Makes the trial that all are timed against.
        makers: What makes the trial of each contender, given the reference's.
        at_once: How many trials fit the memory; rounds go around within so many.
    """

    about: dict[str, Any]
    cost: float
    reference: Callable[[], Trial]
    makers: Mapping[str, Callable[..., Trial]]
    at_once: int


def race_all(
    fields: Sequence[Field],
    rounds: int,
    on_progress: OnProgress = ignore_progress,
    counts: Sequence[int | None] = (None,),
) -> list[dict[str, Any]]:
    """Time contenders versus a reference on every field; skip those that refuse, with their reason.

    Returns:
        What is kept of each field, with "skipped" and "results": a row for every contender and
        number of threads (None is the one that is set), with the seconds of all rounds and the
        quartiles of their ratios.
    """
    total = sum(field.cost * len(field.makers) for field in fields)
    return [_race_field(field, rounds, on_progress, counts, field.cost / total) for field in fields]


def _race_field(
    field: Field,
    rounds: int,
    on_progress: OnProgress,
    counts: Sequence[int | None],
    share: float,  # of each contender
) -> dict[str, Any]:
    results: list[dict[str, Any]] = []
    skipped: list[dict[str, Any]] = []
    doing, waiting = field.about["name"], iter(field.makers.items())
    reference = field.reference()
    while batch := list(islice(waiting, field.at_once)):
        trials: dict[str, Trial] = {}
        for name, make in batch:
            on_progress(f"{doing}: preparing {name}", 0.0)
            try:
                trials[name] = make(reference)
            except REFUSALS as error:
                skipped.append({"contender": name, "reason": " ".join(str(error).split())})
                on_progress("", share)
        who = [(name, trial, count) for name, trial in trials.items() for count in counts]
        pairs = [
            Pair(f"{doing}: {name}", partial(trial.group, n), partial(reference.group, n))
            for name, trial, n in who
        ]
        times = race(pairs, rounds, on_progress, share * len(trials))
        for (name, trial, count), own in zip(who, times, strict=True):
            threads = {} if count is None else {"threads": count}
            results.append({"contender": name, **threads, **trial.facts, **_columns(*own)})
        for trial in trials.values():
            trial.close()
    reference.close()
    return {**field.about, "results": results, "skipped": skipped}


def _columns(own: Sequence[dict[str, float]], other: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return the times of a pair by their names, an entry per round, and what follows from them."""
    times = {key: [group[key] for group in own] for key in own[0]}
    times |= {f"reference_{key}": [group[key] for group in other] for key in other[0]}
    ratio = Quartiles.of(divide(times["seconds"], times["reference_seconds"]))
    milliseconds = 1e3 * Quartiles.of(times["seconds"]).median
    return {**times, "ratio": asdict(ratio), "milliseconds": milliseconds}


def warm_up(run: Callable[[int], float], group_seconds: float) -> int:
    """Take single steps to warm up, and return how many make a group of so many seconds.

    The faster of the last two steps counts; `run` takes so many and returns seconds per step.
    """
    fastest = min([run(1) for _ in range(WARM_UP)][-2:])
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
