"""The page and the figures of the theorems, measured: `hvadam theory`."""

from __future__ import annotations

from pathlib import Path

from hvadam_bench.pages.figures import save
from hvadam_bench.pages.theorems import figures, page
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies.theorems.result import Theory


def write(found: Theory, out: Path) -> list[Path]:
    """Write results, page and figures below a directory; return what was written."""
    written = [out / "results" / "theory.json", out / "docs" / "theory.md"]
    found.save(written[0])
    write_atomically(written[1], page.render(found).encode())
    folder = out / "docs" / "figures"
    return written + [
        save(figure, folder / f"theory-{name}.png")
        for name, figure in figures.draw_all(found).items()
    ]
