"""The tables, notes and charts of step times: `hvadam speed`."""

from __future__ import annotations

from pathlib import Path

from hvadam_bench.pages.figures import save
from hvadam_bench.pages.speed import figures
from hvadam_bench.studies.speed.result import Speed


def write(found: Speed, out: Path) -> list[Path]:
    """Write numbers and charts into a directory; return what was written."""
    written = [out / "speed.json"]
    found.save(written[0])
    if found.shapes:
        written.append(save(figures.draw_shapes(found), out / "speed.png"))
    if found.growth:
        written.append(save(figures.draw_growth(found, found.growth), out / "growth.png"))
    return written
