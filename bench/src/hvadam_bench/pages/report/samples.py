"""What generators made in training, as pictures that the page can show.

Each contender shows one judged run, the one in the middle by its test value: nobody shows their
best. Pictures that would make the page too large stay where they are, beside the records.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import TaskResults
from hvadam_bench.analysis.judging import middle_run
from hvadam_bench.pages.formatting import Units
from hvadam_bench.pages.report.tables import units_of
from hvadam_bench.running.records import Record, Store

# Bytes of pictures on one task. Sixteen contenders with eleven grey ones of 128 pixels make 2 MB.
BUDGET = 6_000_000


@dataclass(frozen=True)
class Figure:
    """What one contender shows.

    Attributes:
        name: The contender's.
        run: Which of its runs.
        shown: For each step of the task, the place of the picture in `Samples.pictures`.
        values: For each step of the task, the run's value then.
    """

    name: str
    run: Record
    shown: Sequence[int]
    values: Sequence[str]

    @property
    def note(self) -> str:
        """Return why the run did not end as others do."""
        return "" if self.run.status == "done" else f"{self.run.status}: {self.run.reason}"


@dataclass(frozen=True)
class Samples:
    """The pictures of a task.

    Attributes:
        measure: What the values are of.
        steps: When there are pictures, in rising order.
        left_out: How many more steps have pictures, which would not fit.
        pictures: Base64 of each that is shown; the same one at several places is here once.
        figures: One for each contender.
    """

    measure: str
    steps: Sequence[int]
    left_out: int
    pictures: Sequence[str]
    figures: Sequence[Figure]

    def packed(self) -> dict[str, Any]:
        """Return what a script needs to go to another step; the last one is in the page."""
        last = {figure.shown[-1] for figure in self.figures}
        pictures = [None if i in last else one for i, one in enumerate(self.pictures)]
        figures = {one.name: {"shown": one.shown, "values": one.values} for one in self.figures}
        return {"steps": self.steps, "pictures": pictures, "figures": figures}


def samples(task: TaskResults, store: Store) -> Samples | None:
    """Return the pictures of a task's contenders, if there are any."""
    judged = [one for one in task.contenders.values() if one.judged]
    runs = {one.name: middle_run(one.judged, task.metric) for one in judged}
    found = {name: own for name, run in runs.items() if (own := store.samples(run))}
    if not found:
        return None
    sizes: dict[int, int] = {}
    for own in found.values():
        for step, path in own.items():
            sizes[step] = sizes.get(step, 0) + path.stat().st_size
    steps, units = that_fit(sizes, BUDGET), units_of(task)
    places: dict[str, int] = {}  # picture -> its place: untrained networks of one seed are alike
    figures = []
    for name, own in found.items():
        nearest = [_up_to(step, own) for step in steps]
        coded = [b64encode(own[step].read_bytes()).decode() for step in nearest]
        shown = [places.setdefault(one, len(places)) for one in coded]
        values = [
            _value(runs[name], then, step, units, task.metric)
            for then, step in zip(nearest, steps, strict=True)
        ]
        figures.append(Figure(name, runs[name], shown, values))
    return Samples(units.measure, steps, len(sizes) - len(steps), list(places), figures)


def that_fit(sizes: Mapping[int, int], budget: int) -> list[int]:
    """Return as many steps as a budget has room for, evenly spread; the last one in any case.

    Example:
        >>> that_fit({0: 10, 5: 10, 10: 10, 15: 10, 20: 10}, budget=35)
        [0, 10, 20]
    """
    every = sorted(sizes)
    for count in range(len(every), 1, -1):
        chosen = [every[round(i * (len(every) - 1) / (count - 1))] for i in range(count)]
        if sum(sizes[step] for step in chosen) <= budget:
            return chosen
    return every[-1:]


def _up_to(step: int, own: Mapping[int, Path]) -> int:
    """Return the latest picture at a step: a run that stopped early keeps its last one."""
    return max((one for one in own if one <= step), default=min(own))


def _value(run: Record, then: int, step: int, units: Units, metric: statistics.Metric) -> str:
    """Return a run's value at the step of a picture, which is named where it is another."""
    measured = {point.step: point.valid for point in run.curve}.get(then, {})
    value = units.value(measured.get(metric.name, float("nan")))
    return value if then == step else f"{value} at step {then:,}"
