"""The table that `hvadam variants` prints, which the guide on memory and time shows."""

from __future__ import annotations

from collections.abc import Callable

from hvadam_bench.publishing.formatting import fixed, ranged, signed
from hvadam_bench.publishing.pages import say
from hvadam_bench.publishing.tables import Table
from hvadam_bench.studies.variants import Difference, Variants


def variants_table(found: Variants) -> Table:
    """Return a table of the variants beside the exact one, a row for each task and variant."""
    by_place: dict[tuple[str, str], dict[str, Difference]] = {}
    for one in found.differences:
        by_place.setdefault((one.task, one.variant), {})[one.measure] = one
    rows = [
        [
            *place,
            _told(measured["loss"], lambda x: fixed(x, 3)),
            _told(measured["accuracy"], lambda x: signed(x, 2)),
            str(measured["loss"].n),
        ]
        for place, measured in by_place.items()
    ]
    heads = ["task", "variant", "test loss, ratio", "test accuracy, points", "n"]
    reading = say("terminal.txt.j2", "variants", found.lr)
    return Table(heads, rows, reading=reading)


def _told(one: Difference, write: Callable[[float], str]) -> str:
    return f"{ranged(one.mean, one.low, one.high, write)} {one.verdict}"
