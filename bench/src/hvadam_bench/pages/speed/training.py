"""Whole training steps as tables: `hvadam speed --training`."""

from __future__ import annotations

from hvadam_bench.pages.formatting import quartiles, three_digits
from hvadam_bench.pages.tables import Table
from hvadam_bench.studies.speed.result import Quartiles
from hvadam_bench.studies.speed.training import Trained, TrainingTime

HEADS = ("contender", "adds", "optimizer", "share", "memory")
READING = (
    "adds: time of a whole training step over that with fused AdamW measured next to it, "
    "less 1, median (quartiles) over the rounds",
    "optimizer: its time alone over that of fused AdamW alone; share: its part of the whole step",
    "memory: added to the peak: parameters, state and the most that a step holds besides, over "
    "those with fused AdamW, less 1",
)


def tabulate(trained: Trained) -> Table:
    """Return what each contender adds to the training of one workload."""
    rows = [_row(one) for one in trained.results]
    rows += [[skip.contender, f"skipped: {skip.reason}", "", "", ""] for skip in trained.skipped]
    title = f"{trained.title}: {trained.parameters:,} parameters"
    return Table(HEADS, rows, title=title, right=range(1, len(HEADS)))


def _row(one: TrainingTime) -> list[str]:
    ratio = one.optimizer_ratio
    return [
        one.contender,
        _percent(one.added),
        quartiles(ratio.median, ratio.q1, ratio.q3, three_digits),
        f"{100 * one.optimizer_share.median:.1f}%",
        f"{100 * one.memory_added:+.1f}%",
    ]


def _percent(of: Quartiles) -> str:
    return quartiles(of.median, of.q1, of.q3, lambda x: f"{100 * x:+.1f}%")
