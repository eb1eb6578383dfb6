"""The table of what gradient evaluations cost, which `hvadam evaluation-times` prints."""

from __future__ import annotations

from hvadam_bench.pages.formatting import fixed, quartiles, three_digits
from hvadam_bench.pages.rendering import say
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.studies._pairs import Quartiles
from hvadam_bench.studies.evidence.evaluation_times import EvaluationTimes


def evaluation_times_table(found: EvaluationTimes) -> Table:
    """Return a table of everyone's evaluations, the reference of a task first."""
    rows: list[list[str | Cell]] = []
    for task, times in found.tasks.items():
        median = times.reference_milliseconds.median
        rows.append([task, Cell.of(times.reference), three_digits(median), ""])
        rows += [
            [task, Cell.of(name), three_digits(one.milliseconds.median), _written(one.ratio)]
            for name, one in times.contenders.items()
        ]
    heads = ["task", "", "ms per evaluation", "beside the first"]
    reading = say("terminal.txt.j2", "evaluation_times", found)
    return Table(heads, rows, reading=reading)


def _written(one: Quartiles) -> str:
    return quartiles(one.median, one.q1, one.q3, lambda x: fixed(x, 3))
