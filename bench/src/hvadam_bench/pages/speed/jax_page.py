"""Step times in JAX as tables and as a page: `hvadam speed --jax`."""

from __future__ import annotations

from pathlib import Path

from hvadam_bench.pages import rendering
from hvadam_bench.pages.formatting import quartiles, three_digits
from hvadam_bench.pages.tables import Table
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies.speed.jax_result import JaxMeasurement, JaxSpeed, JaxTiming

HEADS = ("optimizer", "ms", "ratio", "temp", "compile", "compile, ratio")


def write(found: JaxSpeed, out: Path) -> list[Path]:
    """Write numbers and the page into a directory; return what was written."""
    written = [out / "speed-jax.json", out / "speed-jax.md"]
    found.save(written[0])
    write_atomically(written[1], render(found).encode())
    return written


def render(found: JaxSpeed) -> str:
    """Return the page."""
    tables = [tabulate(found, measured) for measured in found.shapes]
    return rendering.render("speed_jax.md.j2", found=found, tables=tables)


def tabulate(found: JaxSpeed, measured: JaxMeasurement) -> Table:
    """Return the times on one shape, a row per optimizer."""
    [beside] = [row for row in measured.results if row.contender == found.reference]
    rows = [_row(row, beside) for row in measured.results]
    return Table(HEADS, rows, title=measured.title, right=range(1, len(HEADS)))


def _row(timing: JaxTiming, beside: JaxTiming) -> list[str]:
    ratio = timing.ratio
    return [
        timing.contender,
        three_digits(timing.milliseconds),
        quartiles(ratio.median, ratio.q1, ratio.q3, three_digits),
        f"{timing.temporary_bytes_per_parameter:.2f}",
        f"{timing.compile_seconds:.1f} s",
        f"{timing.compile_seconds / beside.compile_seconds:.1f}",
    ]
