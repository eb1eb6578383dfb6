"""The table that `hvadam throughput` prints."""

from __future__ import annotations

from collections.abc import Iterable

from hvadam_bench.pages.formatting import fixed, quartiles
from hvadam_bench.pages.rendering import say
from hvadam_bench.pages.tables import Table
from hvadam_bench.studies.speed.throughput import BLOCK, Overhead


def throughput_table(found: Iterable[Overhead]) -> Table:
    """Return a table of what the runner costs, a row for each task and clock."""
    rows = [
        [
            one.task,
            one.clock,
            f"{1e3 * one.step:.2f} ms",
            quartiles(one.ratio, one.low, one.high, lambda x: fixed(x, 3)),
            fixed(one.total, 3),
            str(one.n),
        ]
        for one in found
    ]
    heads = ["task", "seconds", "step by hand", "ratio", "all", "n"]
    return Table(heads, rows, reading=say("terminal.txt.j2", "throughput", BLOCK))
