"""What was timed with several numbers of threads: the content of ``speed-threads.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies import _results
from hvadam_bench.studies.speed.result import Plan, Quartiles, Skip

# By how much a ratio to fused Adam may grow from the fewest threads to more: the kernel is to gain
# from them as fused Adam does.
MOST_GROWTH = 1.10


@dataclass(frozen=True)
class ThreadTiming:
    """Steps of one contender with so many threads, one entry per round in the tuples."""

    contender: str
    threads: int
    steps: int  # in each timed group
    seconds: tuple[float, ...]  # per step
    reference_seconds: tuple[float, ...]  # per step of fused Adam beside it, with as many threads

    DERIVED: ClassVar = ("milliseconds", "ratio")

    @property
    def milliseconds(self) -> float:
        """Return the median time of a step."""
        return 1e3 * Quartiles.of(self.seconds).median

    @property
    def ratios(self) -> tuple[float, ...]:
        """Return the time of a step in that of fused Adam, per round."""
        return tuple(a / b for a, b in zip(self.seconds, self.reference_seconds, strict=True))

    @property
    def ratio(self) -> Quartiles:
        """Return the quartiles of the ratios."""
        return Quartiles.of(self.ratios)


@dataclass(frozen=True)
class ThreadMeasurement:
    """All contenders on one shape, with every number of threads."""

    name: str
    title: str
    parameters: int
    results: tuple[ThreadTiming, ...]
    skipped: tuple[Skip, ...]

    @property
    def contenders(self) -> list[str]:
        """Return the names of all that ran, in order."""
        return list(dict.fromkeys(row.contender for row in self.results))

    def of(self, contender: str, threads: int) -> ThreadTiming:
        """Return the timing of a contender that ran."""
        wanted = (contender, threads)
        return next(row for row in self.results if (row.contender, row.threads) == wanted)

    def growth(self, contender: str, fewest: int, threads: int) -> Quartiles:
        """Return the quartiles of how a ratio to fused Adam grows with threads, round by round."""
        few, many = self.of(contender, fewest), self.of(contender, threads)
        return Quartiles.of([b / a for a, b in zip(few.ratios, many.ratios, strict=True)])


@dataclass(frozen=True)
class Placement:
    """Who touched HVAdam's tensors first, and what a step takes then; one entry per round.

    Attributes:
        shape: The tensors.
        threads: Of the steps, and of those who made the tensors where it was all of them.
        nodes: Of memory in this machine; None if unknown. With one of them nothing is far away, and
            the times cannot differ by where pages lie.
        one_share, all_share: The largest share of the state's pages that one thread touched first,
            where one made it and where all did; None if the system does not tell.
        one_seconds, all_seconds: Of a step on tensors made by one thread, and by all.
    """

    shape: str
    threads: int
    nodes: int | None
    one_share: float | None
    all_share: float | None
    one_seconds: tuple[float, ...]
    all_seconds: tuple[float, ...]

    DERIVED: ClassVar = ("ratio",)

    @property
    def ratio(self) -> Quartiles:
        """Return the quartiles of the time on one thread's tensors in that on everyone's."""
        pairs = zip(self.one_seconds, self.all_seconds, strict=True)
        return Quartiles.of([one / everyone for one, everyone in pairs])


@dataclass(frozen=True)
class ThreadSpeed:
    """Every raw number and what it was made with.

    Attributes:
        alone: Whether nobody else kept the machine busy; None if that is not known.
        counts: Numbers of threads, rising.
        placement: Who touched tensors first, if that was asked for.
    """

    date: str
    versions: Mapping[str, Any]
    machine: Mapping[str, Any]
    alone: bool | None
    counts: tuple[int, ...]
    plan: Plan
    reference: str
    shapes: tuple[ThreadMeasurement, ...]
    placement: Placement | None

    def save(self, path: Path) -> None:
        """Write the JSON form."""
        text = json.dumps(_results.to_json(self), indent=2, allow_nan=False)
        write_atomically(path, f"{text}\n".encode())

    @classmethod
    def load(cls, path: Path) -> ThreadSpeed:
        """Read what ``save`` wrote."""
        return _results.from_json(cls, json.loads(path.read_text(encoding="utf-8")))
