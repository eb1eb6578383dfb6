"""What was timed of steps in JAX: the content of ``speed-jax.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies import _results
from hvadam_bench.studies.speed.result import Plan, Quartiles


@dataclass(frozen=True)
class JaxTiming:
    """What was measured of one optimizer on one shape, with one entry per round in the tuples."""

    contender: str
    parameters: int
    steps: int  # in each timed group
    seconds: tuple[float, ...]  # per step
    reference_seconds: tuple[float, ...]  # per step of the Adam beside it
    temporary_bytes: int  # as XLA accounts for them, with parameters and state donated
    compile_seconds: float  # of processor time, all threads together

    DERIVED: ClassVar = ("ratio", "temporary_bytes_per_parameter")

    @property
    def ratio(self) -> Quartiles:
        """Return the quartiles, over rounds, of the time of a step in that of Adam's."""
        pairs = zip(self.seconds, self.reference_seconds, strict=True)
        return Quartiles.of([own / other for own, other in pairs])

    @property
    def milliseconds(self) -> float:
        """Return the median time of a step."""
        return 1e3 * Quartiles.of(self.seconds).median

    @property
    def temporary_bytes_per_parameter(self) -> float:
        """Return what a step holds at once beyond parameters, gradients and state."""
        return self.temporary_bytes / self.parameters


@dataclass(frozen=True)
class JaxMeasurement:
    """All optimizers on one shape."""

    name: str
    title: str
    results: tuple[JaxTiming, ...]


@dataclass(frozen=True)
class JaxSpeed:
    """Every raw number and what it was made with."""

    date: str
    versions: Mapping[str, Any]
    machine: Mapping[str, Any]
    threads: int
    plan: Plan
    reference: str
    shapes: tuple[JaxMeasurement, ...]

    def save(self, path: Path) -> None:
        """Write the JSON form."""
        text = json.dumps(_results.to_json(self), indent=2, allow_nan=False)
        write_atomically(path, f"{text}\n".encode())

    @classmethod
    def load(cls, path: Path) -> JaxSpeed:
        """Read what ``save`` wrote."""
        return _results.from_json(cls, json.loads(path.read_text(encoding="utf-8")))
