"""The demo's report: the picture, and everything that the records say."""

from __future__ import annotations

from pathlib import Path

from hvadam_bench.pages import report
from hvadam_bench.studies._study import Results
from hvadam_bench.studies.demo.measure import Demo, store_of


def render(results: Results, out: Path) -> list[Path]:
    """Write the report, if the demo was run there; return the files."""
    demo = results.get("demo")
    if not isinstance(demo, Demo):
        return []
    picture = out / "docs" / "figures" / demo.picture
    return report.write(store_of(out), out / "report.html", paths=picture)
