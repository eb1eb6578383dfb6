"""Measurements as tables, sentences and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from hvadam.bench import info
from hvadam.bench.speed.contenders import REFERENCE, Contender
from hvadam.bench.speed.timing import Growth, Measurement, Plan, Result

COLUMNS = (
    "ratio: time of a step / time of a step of fused Adam measured next to it, median [quartiles] "
    "over the rounds; the row of fused Adam is one copy against another, so it shows the noise",
    "limit: the ratio if both moved only the bytes they must, at the same speed; not where the "
    "cache can hold the tensors",
    "GB/s: those bytes / median time",
    "temp: most bytes per parameter that a step holds at once in torch's CPU allocator, beyond "
    "what it keeps",
    "state: bytes per parameter between steps, step counters not counted",
)


class Context(NamedTuple):
    """What all measurements share."""

    plan: Plan
    threads: int
    bandwidth: dict[str, list[float]]  # GB/s of simple passes over memory
    cache_bytes: int  # of the largest cache; 0 if unknown

    @property
    def copy(self) -> float:
        """The best rate of copying, in GB/s."""
        return max(self.bandwidth["copy"])

    @property
    def fastest(self) -> float:
        """The best rate of any simple pass: what this machine can move, in GB/s."""
        return max(max(rates) for rates in self.bandwidth.values())

    def fits_cache(self, measurement: Measurement) -> bool:
        """Whether Adam's tensors, the smallest of all contenders', stay in the cache."""
        return 16 * measurement.shape.parameters <= self.cache_bytes


def table(measurement: Measurement, context: Context) -> Table:
    """One row per contender."""
    fits = context.fits_cache(measurement)
    result = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),  # the widest table fits 80 columns
        pad_edge=False,
        title=measurement.shape.title,
        title_justify="left",
    )
    result.add_column("contender", no_wrap=True)
    for heading in ("ms", "ratio", "limit", "GB/s", "temp", "state"):
        result.add_column(heading, justify="right", no_wrap=True)
    for row in measurement.results:
        q1, median, q3 = row.ratio
        result.add_row(
            row.contender,
            _digits(1e3 * row.typical_seconds),
            Text(f"{_digits(median)} [{_digits(q1)}, {_digits(q3)}]"),
            "-" if fits else f"{row.limit:.2f}",
            f"{row.gb_per_second:.1f}",
            "-" if row.temporary_bytes is None else _per_parameter(row.temporary_bytes, row),
            _per_parameter(row.state_bytes, row),
        )
    return result


def notes(main: Sequence[Measurement], growth: Growth | None, context: Context) -> list[str]:
    """What the columns mean, who was skipped for which reason, and how the time grows."""
    lines = [
        f"Rounds: {context.plan.rounds}, threads: {context.threads}. Memory: copying reaches "
        f"{context.copy:.1f} GB/s, the fastest simple pass {context.fastest:.1f} GB/s.",
        *(COLUMNS if main else ()),
    ]
    measured = [*main, *chain(*(growth or ()))]
    skips = dict.fromkeys(skip for measurement in measured for skip in measurement.skipped)
    lines += [f"skipped {contender}: {reason}" for contender, reason in skips]
    return lines + (growth_statements(growth, context) if growth else [])


def growth_statements(growth: Growth, context: Context) -> list[str]:
    """Whether the time per parameter stays the same from one end to the other."""
    by_parameters, by_tensors = growth
    beyond = [m for m in by_parameters if not context.fits_cache(m)]
    lines = [
        "Growth: time per parameter, largest / smallest; 1 is linear. Some of it is the machine's "
        f"(cache: {context.cache_bytes / 2**20:.0f} MiB), so compare with fused Adam."
    ]
    for name in contender_names([*by_parameters, *by_tensors]):
        parts = [_growth(name, by_parameters, "parameters"), _growth(name, by_tensors, "tensors")]
        if 1 < len(beyond) < len(by_parameters):
            parts.insert(1, _growth(name, beyond, "parameters, beyond the cache"))
        lines.append(f"{name}: {'; '.join(part for part in parts if part)}")
    return lines


def amount(count: float) -> str:
    """Such as 4M, or 10,000."""
    return f"{count / 1e6:g}M" if count >= 1e6 else f"{count:,.0f}"


def contender_names(measured: Sequence[Measurement]) -> list[str]:
    """Of all that ran, in order."""
    return list(dict.fromkeys(row.contender for m in measured for row in m.results))


def result_of(measurement: Measurement, contender: str) -> Result | None:
    """None if it was skipped."""
    return next((row for row in measurement.results if row.contender == contender), None)


def as_dict(
    main: Sequence[Measurement],
    growth: Growth | None,
    contenders: Sequence[Contender],
    context: Context,
) -> dict[str, Any]:
    """Every raw number and what it was made with, as JSON can hold it."""
    found = info.collect()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": found["versions"],
        "machine": found["machine"] | {"native_instruction_set": found["instruction_set"]},
        "threads": context.threads,
        "plan": asdict(context.plan),
        "bandwidth_gb_per_second": context.bandwidth,
        "reference": REFERENCE.name,
        "contenders": {
            c.name: {
                "options": dict(c.options),
                "clip_grad_norm": c.clip,
                "native_hidden": c.portable,
                "streams": c.streams._asdict(),
            }
            for c in contenders
        },
        "shapes": [_measurement(m) for m in main],
        "growth": growth
        and {name: [_measurement(m) for m in part] for name, part in growth._asdict().items()},
    }


def _measurement(measurement: Measurement) -> dict[str, Any]:
    shape, results, skipped = measurement
    return {
        "name": shape.name,
        "title": shape.title,
        "tensors": len(shape.sizes),
        "parameters": shape.parameters,
        "results": [
            asdict(row)
            | {
                "ratios": row.ratios,
                "ratio": row.ratio._asdict(),
                "milliseconds": 1e3 * row.typical_seconds,
                "gb_per_second": row.gb_per_second,
                "state_bytes_per_parameter": row.state_bytes / row.parameters,
                "temporary_bytes_per_parameter": None
                if row.temporary_bytes is None
                else row.temporary_bytes / row.parameters,
            }
            for row in results
        ],
        "skipped": [skip._asdict() for skip in skipped],
    }


def _growth(name: str, measured: Sequence[Measurement], what: str) -> str:
    rows = [(m.shape, result_of(m, name)) for m in measured]
    points = [(shape, row.typical_seconds / row.parameters) for shape, row in rows if row]
    if len(points) < 2:
        return ""
    (small, least), (large, most) = points[0], points[-1]
    counts = [len(s.sizes) if what == "tensors" else s.parameters for s in (large, small)]
    return f"{' / '.join(map(amount, counts))} {what}: {most / least:.2f}"


def _per_parameter(count: int, row: Result) -> str:
    return _digits(count / row.parameters)


def _digits(x: float) -> str:
    """Three digits that mean something."""
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"
