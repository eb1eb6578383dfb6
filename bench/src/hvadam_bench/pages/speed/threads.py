"""Step times with several numbers of threads as tables: `hvadam speed --threads 1,2`."""

from __future__ import annotations

from hvadam_bench.pages.formatting import counted, quartiles, share, three_digits
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.studies.speed.result import Quartiles
from hvadam_bench.studies.speed.threads_result import (
    MOST_GROWTH,
    Placement,
    ThreadMeasurement,
    ThreadSpeed,
)

READING = (
    "ratio: time of a step / time of a step of fused Adam with as many threads, measured next to "
    "it, median (quartiles) over the rounds",
    "grows: that ratio with more threads / with the fewest, round by round; above "
    f"{MOST_GROWTH:.2f} by the median it is too much, and marked !",
    "the row of fused Adam is one copy against another, so it shows the noise",
)
BUSY = (
    "Other processes kept the machine busy meanwhile: with several threads, of which all wait for "
    "the slowest, these numbers mean nothing. Measure again when it is quiet."
)


def tabulate(found: ThreadSpeed, measured: ThreadMeasurement) -> Table:
    """Return the ratios on one shape, a row per contender."""
    fewest, *more = found.counts
    rows = [
        [
            name,
            *(_written(measured.of(name, count).ratio) for count in found.counts),
            *(_grown(measured.growth(name, fewest, count)) for count in more),
        ]
        for name in measured.contenders
    ]
    heads = [
        "contender",
        *(f"ratio, {counted(count, 'thread')}" for count in found.counts),
        *(f"grows {fewest} to {count}" for count in more),
    ]
    return Table(heads, rows, title=measured.title, right=range(1, len(heads)))


def list_notes(found: ThreadSpeed) -> list[str]:
    """Return what the columns mean, who was skipped, and who touched the state first."""
    skips = dict.fromkeys(skip for measured in found.shapes for skip in measured.skipped)
    return [
        f"Rounds: {found.plan.rounds}.",
        *(READING if found.shapes else ()),
        *((BUSY,) if found.alone is False else ()),
        *(f"skipped {skip.contender}: {skip.reason}" for skip in skips),
        *(list_placement(found.placement) if found.placement else ()),
    ]


def list_placement(found: Placement) -> list[str]:
    """Return who touched the state first, and what that changes."""
    lines = [
        f"First touch, {found.shape}: a step on tensors that one thread made takes "
        f"{_written(found.ratio)} times as long as on those that "
        f"{counted(found.threads, 'thread')} made."
    ]
    if found.one_share is not None and found.all_share is not None:
        lines.append(
            f"The busiest thread touches {share(found.one_share)} of new state first where one "
            f"makes it, {share(found.all_share)} where all do."
        )
    if found.nodes is None or found.nodes > 1:
        nodes = "an unknown number of nodes" if found.nodes is None else f"{found.nodes} nodes"
        lines.append(f"Memory here has {nodes}: a page lies in that of its first touch.")
    else:
        lines.append(
            "Memory here has 1 node, so no page is far from a core: this says who touches it, not "
            "what that costs where there are more."
        )
    return lines


def _grown(growth: Quartiles) -> Cell:
    over = growth.median > MOST_GROWTH
    return Cell(_written(growth) + (" !" if over else ""), mark=over)


def _written(one: Quartiles) -> str:
    return quartiles(one.median, one.q1, one.q3, three_digits)
