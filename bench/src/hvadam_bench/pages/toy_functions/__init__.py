"""The page and the figures of the race on the toy functions: `hvadam valley`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hvadam_bench.pages.figures import save
from hvadam_bench.pages.toy_functions import figures, page, paths
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies.toy_functions.paths import Paths
from hvadam_bench.studies.toy_functions.result import Comparison


def write(found: Comparison, out: Path) -> list[Path]:
    """Write results, page and figures below a directory; return what was written."""
    folder = out / "docs" / "figures"
    written = [out / "results" / "valley.json", out / "docs" / "valley.md"]
    found.save(written[0])
    write_atomically(written[1], page.render(found).encode())
    drawn = {**figures.draw_all(found), "triangle": paths.draw_triangle()}
    return written + [save(figure, folder / f"valley-{name}.png") for name, figure in drawn.items()]


def write_paths(found: Iterable[Paths], out: Path) -> list[Path]:
    """Draw paths into the figures below a directory; return what was written."""
    folder = out / "docs" / "figures"
    return [save(paths.draw(one), folder / f"valley-{one.problem.label}.png") for one in found]
