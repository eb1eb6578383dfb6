"""Step times as tables, and what to know when reading them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from hvadam_bench.pages.formatting import amount, quartiles, three_digits
from hvadam_bench.pages.tables import Table
from hvadam_bench.studies.speed.result import Growth, Measurement, Speed, Timing, contender_names

COLUMNS = (
    "ratio: time of a step / time of a step of fused Adam measured next to it, median (quartiles) "
    "over the rounds; the row of fused Adam is one copy against another, so it shows the noise",
    "limit: the ratio if both moved only the bytes they must, at the same speed; not where the "
    "cache can hold the tensors",
    "GB/s: those bytes / median time",
    "temp: most bytes per parameter that a step holds at once in torch's CPU allocator, beyond "
    "what it keeps",
    "state: bytes per parameter between steps, step counters not counted",
)
HEADS = ("contender", "ms", "ratio", "limit", "GB/s", "temp", "state")


def tabulate(found: Speed, measured: Measurement) -> Table:
    """Return the times on one shape, a row per contender."""
    fits = found.fits_cache(measured)
    rows = [_row(timing, fits_cache=fits) for timing in measured.results]
    return Table(HEADS, rows, title=measured.title, right=range(1, len(HEADS)))


def list_notes(found: Speed) -> list[str]:
    """Return what the columns mean, who was skipped for which reason, and how the time grows."""
    growth = found.growth
    grown = [*growth.by_parameters, *growth.by_tensors] if growth else []
    skips = dict.fromkeys(chain(*(measured.skipped for measured in (*found.shapes, *grown))))
    return [
        f"Rounds: {found.plan.rounds}, threads: {found.threads}. Memory: copying reaches "
        f"{found.copy_rate:.1f} GB/s, the fastest simple pass {found.fastest_rate:.1f} GB/s.",
        *(COLUMNS if found.shapes else ()),
        *(f"skipped {skip.contender}: {skip.reason}" for skip in skips),
        *(list_growth(found, growth) if growth else ()),
    ]


def list_growth(found: Speed, growth: Growth) -> list[str]:
    """Return how the time per parameter changes from one end to the other."""
    by_parameters, by_tensors = growth.by_parameters, growth.by_tensors
    beyond = [measured for measured in by_parameters if not found.fits_cache(measured)]
    lines = [
        "Growth: time per parameter, largest / smallest; 1 is linear. Some of it is the machine's "
        f"(cache: {found.cache_bytes / 2**20:.0f} MiB), so compare with fused Adam."
    ]
    for name in contender_names([*by_parameters, *by_tensors]):
        parts = [_growth(name, by_parameters, "parameters"), _growth(name, by_tensors, "tensors")]
        if 1 < len(beyond) < len(by_parameters):
            parts.insert(1, _growth(name, beyond, "parameters, beyond the cache"))
        lines.append(f"{name}: {'; '.join(part for part in parts if part)}")
    return lines


def _row(timing: Timing, *, fits_cache: bool) -> list[str]:
    ratio, temporary = timing.ratio, timing.temporary_bytes_per_parameter
    return [
        timing.contender,
        three_digits(timing.milliseconds),
        quartiles(ratio.median, ratio.q1, ratio.q3, three_digits),
        "-" if fits_cache else f"{timing.limit:.2f}",
        f"{timing.gb_per_second:.1f}",
        "-" if temporary is None else three_digits(temporary),
        three_digits(timing.state_bytes_per_parameter),
    ]


def _growth(name: str, measured: Sequence[Measurement], what: str) -> str:
    rows = [(one, one.of(name)) for one in measured]
    points = [(one, row.typical_seconds / row.parameters) for one, row in rows if row]
    if len(points) < 2:
        return ""
    (small, least), (large, most) = points[0], points[-1]
    counts = [one.tensors if what == "tensors" else one.parameters for one in (large, small)]
    return f"{' / '.join(map(amount, counts))} {what}: {most / least:.2f}"
