"""What was timed: the content of ``speed.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies import _results


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    rounds: int = 7
    group_seconds: float = 0.05  # at least, of the steps that are timed together
    warm_up: int = 3  # steps
    temporaries: bool = True
    memory: float = 8e9  # bytes that tensors may take, roughly

    @classmethod
    def quick(cls) -> Plan:
        """Return a plan that is enough to see that it works."""
        return cls(rounds=3, group_seconds=0.01)


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
class Timing:
    """What was measured of one contender on one shape, with one entry per round in the tuples."""

    contender: str
    parameters: int
    steps: int  # in each timed group
    seconds: tuple[float, ...]  # per step
    reference_steps: int
    reference_seconds: tuple[float, ...]  # per step of the fused Adam beside it
    state_bytes: int
    temporary_bytes: int | None  # None: not measured
    moved_bytes: float  # per parameter, at the least
    limit: float  # of the ratio, where memory is what both wait for
    kernels: tuple[str, ...]

    DERIVED: ClassVar = (
        "ratios",
        "ratio",
        "milliseconds",
        "gb_per_second",
        "state_bytes_per_parameter",
        "temporary_bytes_per_parameter",
    )

    @property
    def ratios(self) -> tuple[float, ...]:
        """Return the time of a step in that of fused Adam, per round."""
        return tuple(a / b for a, b in zip(self.seconds, self.reference_seconds, strict=True))

    @property
    def ratio(self) -> Quartiles:
        """Return the quartiles of the ratios."""
        return Quartiles.of(self.ratios)

    @property
    def typical_seconds(self) -> float:
        """Return the median time of a step."""
        return Quartiles.of(self.seconds).median

    @property
    def milliseconds(self) -> float:
        """Return the median time of a step in milliseconds."""
        return 1e3 * self.typical_seconds

    @property
    def gb_per_second(self) -> float:
        """Return the rate of the least possible traffic; what moves twice is not counted twice."""
        return self.moved_bytes * self.parameters / self.typical_seconds / 1e9

    @property
    def state_bytes_per_parameter(self) -> float:
        """Return what stays between steps."""
        return self.state_bytes / self.parameters

    @property
    def temporary_bytes_per_parameter(self) -> float | None:
        """Return what a step holds at once beyond what it keeps; None if it was not measured."""
        return None if self.temporary_bytes is None else self.temporary_bytes / self.parameters


@dataclass(frozen=True)
class Skip:
    """A contender that cannot run here."""

    contender: str
    reason: str


@dataclass(frozen=True)
class Measurement:
    """All contenders on one shape."""

    name: str
    title: str
    tensors: int
    parameters: int
    results: tuple[Timing, ...]
    skipped: tuple[Skip, ...]

    def of(self, contender: str) -> Timing | None:
        """Return the timing of a contender; None if it was skipped."""
        return next((row for row in self.results if row.contender == contender), None)


@dataclass(frozen=True)
class Growth:
    """Step times on shapes that grow in parameters, and on shapes that grow in tensors."""

    by_parameters: tuple[Measurement, ...]
    by_tensors: tuple[Measurement, ...]


@dataclass(frozen=True)
class Timed:
    """The options of a contender that was timed, and what its step has to move."""

    options: Mapping[str, Any]
    clip_grad_norm: float | None
    native_hidden: bool
    streams: Mapping[str, int]


@dataclass(frozen=True)
class Speed:
    """Every raw number and what it was made with."""

    date: str
    versions: Mapping[str, Any]
    machine: Mapping[str, Any]
    threads: int
    plan: Plan
    bandwidth_gb_per_second: Mapping[str, tuple[float, ...]]  # of simple passes over memory
    reference: str
    contenders: Mapping[str, Timed]
    shapes: tuple[Measurement, ...]
    growth: Growth | None

    @property
    def copy_rate(self) -> float:
        """Return the best rate of copying, in GB/s."""
        return max(self.bandwidth_gb_per_second["copy"])

    @property
    def fastest_rate(self) -> float:
        """Return the best rate of any simple pass: what this machine can move, in GB/s."""
        return max(max(rates) for rates in self.bandwidth_gb_per_second.values())

    @property
    def cache_bytes(self) -> int:
        """Return the size of the largest cache; 0 if unknown."""
        return max(self.machine["caches"].values(), default=0)

    def fits_cache(self, measurement: Measurement) -> bool:
        """Return whether Adam's tensors, the smallest of all contenders', stay in the cache."""
        return 16 * measurement.parameters <= self.cache_bytes

    def save(self, path: Path) -> None:
        """Write the JSON form."""
        text = json.dumps(_results.to_json(self), indent=2, allow_nan=False)
        write_atomically(path, f"{text}\n".encode())

    @classmethod
    def load(cls, path: Path) -> Speed:
        """Read what ``save`` wrote."""
        return _results.from_json(cls, json.loads(path.read_text(encoding="utf-8")))


def contender_names(measured: Sequence[Measurement]) -> list[str]:
    """Return the names of all that ran, in order."""
    return list(dict.fromkeys(row.contender for one in measured for row in one.results))
