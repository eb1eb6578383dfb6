"""Step times as tables with notes on how to read them, as charts, and as a page on JAX."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from hvadam_bench.pages import rendering
from hvadam_bench.pages.formatting import amount, counted, fixed, quartiles, three_digits
from hvadam_bench.pages.tables import Cell, Table
from hvadam_bench.running.files import write_atomically
from hvadam_bench.studies._pairs import Quartiles
from hvadam_bench.studies._study import Results
from hvadam_bench.studies.speed.results import (
    MOST_GROWTH,
    Growth,
    JaxMeasurement,
    JaxSpeed,
    Measured,
    Measurement,
    RunnerCost,
    Speed,
    ThreadMeasurement,
    ThreadSpeed,
    Trained,
    TrainingSpeed,
    contender_names,
)

TEMPLATE = Path(__file__).with_name("page.md.j2")
NOTES = Path(__file__).with_name("notes.txt.j2")


def render(results: Results, out: Path) -> list[Path]:
    """Write the page on JAX and the charts of torch's steps below a folder; return their paths."""
    written: list[Path] = []
    if "speed-jax" in results:
        written.append(out / "docs" / "speed-jax.md")
        write_atomically(written[-1], render_page(results["speed-jax"]).encode())
    found = results.get("speed")
    if found and (found.shapes or found.growth):
        from hvadam_bench.studies.speed import figures

        written += figures.draw(found, out / "docs" / "figures")
    return written


def render_page(found: JaxSpeed) -> str:
    """Return the page on steps in JAX."""
    tables = [jax_table(found, measured) for measured in found.shapes]
    return rendering.render(TEMPLATE, found=found, tables=tables)


def tabulate(results: Results) -> Iterator[Table | str]:
    """Yield the tables of results, each kind's with what to know when reading them."""
    for found in results.values():
        match found:
            case Speed():
                yield from (step_table(found, one) for one in found.shapes)
                yield step_notes(found)
            case ThreadSpeed():
                yield from (thread_table(found, one) for one in found.shapes)
                yield thread_notes(found)
            case JaxSpeed():
                yield from (jax_table(found, one) for one in found.shapes)
            case TrainingSpeed():
                yield from map(training_table, found.workloads)
                yield rendering.say(NOTES, "training")
            case _:
                yield runner_table(found)


def step_table(found: Speed, measured: Measurement) -> Table:
    """Return the times on one shape, a row per contender."""
    fits = found.fits_cache(measured)
    rows = [
        [
            one.contender,
            three_digits(one.milliseconds),
            _written(one.ratio),
            "-" if fits else f"{one.limit:.2f}",
            f"{one.gb_per_second:.1f}",
            "-" if (held := one.temporary_bytes_per_parameter) is None else three_digits(held),
            three_digits(one.state_bytes_per_parameter),
        ]
        for one in measured.results
    ]
    heads = ("contender", "ms", "ratio", "limit", "GB/s", "temp", "state")
    return _table(heads, rows, measured.title)


def step_notes(found: Speed) -> str:
    """Return what the columns mean, why contenders were skipped, and how the time grows."""
    growth = found.growth
    grown = [*growth.by_parameters, *growth.by_tensors] if growth else []
    notes = rendering.say(NOTES, "steps", found, _skips(*found.shapes, *grown))
    return "\n".join([notes, *(list_growth(found, growth) if growth else ())])


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
        lines.append(f"{name}: {'; '.join(filter(None, parts))}")
    return lines


def thread_table(found: ThreadSpeed, measured: ThreadMeasurement) -> Table:
    """Return the ratios on one shape with every number of threads, a row per contender."""

    def grown(name: str, count: int) -> Cell:
        growth = measured.growth(name, fewest, count)
        over = growth.median > MOST_GROWTH
        return Cell(_written(growth) + (" !" if over else ""), mark=over)

    fewest, *more = found.counts
    rows = [
        [
            name,
            *(_written(measured.of(name, count).ratio) for count in found.counts),
            *(grown(name, count) for count in more),
        ]
        for name in contender_names([measured])
    ]
    heads = [
        "contender",
        *(f"ratio, {counted(count, 'thread')}" for count in found.counts),
        *(f"grows {fewest} to {count}" for count in more),
    ]
    return _table(heads, rows, measured.title)


def thread_notes(found: ThreadSpeed) -> str:
    """Return what the columns mean, why contenders were skipped, and who touched the state."""
    notes = rendering.say(NOTES, "threads", found, _skips(*found.shapes), MOST_GROWTH)
    if found.placement is None:
        return notes
    ratio = _written(found.placement.ratio)
    return f"{notes}\n{rendering.say(NOTES, 'placement', found.placement, ratio)}"


def jax_table(found: JaxSpeed, measured: JaxMeasurement) -> Table:
    """Return the times on one shape in JAX, a row per optimizer."""
    [adam] = [one for one in measured.results if one.contender == found.reference]
    rows = [
        [
            one.contender,
            three_digits(one.milliseconds),
            _written(one.ratio),
            f"{one.temporary_bytes_per_parameter:.2f}",
            f"{one.compile_seconds:.1f} s",
            f"{one.compile_seconds / adam.compile_seconds:.1f}",
        ]
        for one in measured.results
    ]
    heads = ("optimizer", "ms", "ratio", "temp", "compile", "compile, ratio")
    return _table(heads, rows, measured.title)


def training_table(trained: Trained) -> Table:
    """Return what each contender adds to the training of one workload."""
    rows = [
        [
            one.contender,
            quartiles(*_ordered(one.added), lambda x: f"{100 * x:+.1f}%"),
            _written(one.optimizer_ratio),
            f"{100 * one.optimizer_share.median:.1f}%",
            f"{100 * one.memory_added:+.1f}%",
        ]
        for one in trained.results
    ]
    rows += [[skip.contender, f"skipped: {skip.reason}"] for skip in trained.skipped]
    title = f"{trained.title}: {trained.parameters:,} parameters"
    return _table(("contender", "adds", "optimizer", "share", "memory"), rows, title)


def runner_table(found: RunnerCost) -> Table:
    """Return what the runner costs, a row for each task and clock."""
    rows = [
        [
            one.task,
            one.clock,
            f"{1e3 * Quartiles.of(one.reference_seconds).median:.2f} ms",
            quartiles(*_ordered(one.ratio), lambda x: fixed(x, 3)),
            fixed(one.total, 3),
            str(len(one.seconds)),
        ]
        for one in found.tasks
    ]
    heads = ["task", "seconds", "step by hand", "ratio", "all", "n"]
    return Table(heads, rows, reading=rendering.say(NOTES, "runner", found.block))


def _table(heads: Sequence[str], rows: Sequence[Sequence[Cell | str]], title: str) -> Table:
    return Table(heads, rows, title=title, right=range(1, len(heads)))


def _written(one: Quartiles) -> str:
    return quartiles(*_ordered(one), three_digits)


def _ordered(one: Quartiles) -> tuple[float, float, float]:
    return one.median, one.q1, one.q3


def _skips(*measured: Measured) -> list[object]:
    return list(dict.fromkeys(chain(*(one.skipped for one in measured))))


def _growth(name: str, measured: Sequence[Measurement], what: str) -> str:
    rows = [(one, one.of(name)) for one in measured]
    points = [(one, row.milliseconds / row.parameters) for one, row in rows if row]
    if len(points) < 2:
        return ""
    (small, least), (large, most) = points[0], points[-1]
    counts = [one.tensors if what == "tensors" else one.parameters for one in (large, small)]
    return f"{' / '.join(map(amount, counts))} {what}: {most / least:.2f}"
