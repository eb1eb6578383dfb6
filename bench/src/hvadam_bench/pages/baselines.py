"""The table of what trivial models reach, which `hvadam baselines` prints."""

from __future__ import annotations

from hvadam_bench import tasks
from hvadam_bench.pages.formatting import measure
from hvadam_bench.pages.tables import Table
from hvadam_bench.studies.evidence.baselines import Baselines


def baselines_table(found: Baselines) -> Table:
    """Return a table of the baselines, a row for each task."""
    rows = [
        [tasks.get(task).title, one.method, f"{one.test:g}", measure(one.metric, ())]
        for task, one in found.of.items()
    ]
    return Table(["task", "trivial model", "test", ""], rows)
