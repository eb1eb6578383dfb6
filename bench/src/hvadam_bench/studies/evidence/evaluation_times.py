"""What a gradient evaluation costs with each contender: ``results/evaluation-times.json``.

Budgets count evaluations, so that they are the same on every machine; this says what one of them
takes with the step that follows from it, beside the reference's. Importing it loads no framework.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies import _results
from hvadam_bench.studies._pairs import Paired, Quartiles


@dataclass(frozen=True)
class EvaluationTime(Paired):
    """One contender's evaluations on one task, in seconds of one with its share of a step.

    Attributes:
        evaluations: In a timed group, at the least, because a step of L-BFGS is never cut.
    """

    evaluations: int

    DERIVED: ClassVar = ("milliseconds", "ratio")

    @property
    def milliseconds(self) -> Quartiles:
        """Return the quartiles of an evaluation's milliseconds."""
        return Quartiles.of([1e3 * one for one in self.seconds])


@dataclass(frozen=True)
class TaskTimes:
    """Everyone's evaluations on one task.

    Attributes:
        part: The suite that it belongs to.
        reference: Beside whom they are timed.
        contenders: By name, without the reference.
    """

    part: str
    reference: str
    contenders: Mapping[str, EvaluationTime]

    DERIVED: ClassVar = ("reference_milliseconds",)

    @property
    def reference_milliseconds(self) -> Quartiles:
        """Return the quartiles of the reference's milliseconds, over all its groups."""
        return Quartiles.of(
            [1e3 * x for one in self.contenders.values() for x in one.reference_seconds]
        )


@dataclass(frozen=True)
class EvaluationTimes:
    """Every raw number and what it was made with.

    Attributes:
        date, environment: When, and with which versions, machine and sources.
        alone: Whether nobody else kept the machine busy; None if that is not known.
        threads, rounds: Of torch; pairs of groups for each contender.
        tasks: By name.
    """

    date: str
    environment: Mapping[str, Any]
    alone: bool | None
    threads: int
    rounds: int
    tasks: Mapping[str, TaskTimes]

    def save(self, path: Path) -> None:
        """Write the JSON form."""
        text = json.dumps(_results.to_json(self), indent=1, allow_nan=False)
        write_atomically(path, f"{text}\n".encode())

    @classmethod
    def load(cls, path: Path) -> EvaluationTimes:
        """Read the JSON form."""
        return _results.from_json(cls, json.loads(path.read_text(encoding="utf-8")))
