"""The benchmark: every contender on every shape, and on shapes that grow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from hvadam import info
from hvadam_bench.studies import _results
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.speed.contenders import REFERENCE, Contender
from hvadam_bench.studies.speed.memory import bandwidth
from hvadam_bench.studies.speed.result import Growth, Measurement, Plan, Speed, Timed
from hvadam_bench.studies.speed.shapes import Shape
from hvadam_bench.studies.speed.timing import Progress, measure, torch_threads


def benchmark(
    shapes: Sequence[Shape],
    contenders: Sequence[Contender],
    plan: Plan,
    *,
    threads: int = 1,
    growing: tuple[Sequence[Shape], Sequence[Shape]] | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Speed:
    """Time every contender on every shape.

    Args:
        shapes: On which all contenders are timed.
        contenders: Who is timed.
        plan: How much.
        threads: How many torch may use.
        growing: Shapes that grow in parameters, and shapes that grow in tensors.
        on_progress: Told between timed groups only, so that it disturbs none.
    """
    growers = [contender for contender in contenders if contender.grows]
    short = replace(plan, temporaries=False)
    work = [(shape, contenders, plan) for shape in shapes]
    work += [(shape, growers, short) for part in growing or () for shape in part]
    total = sum(_cost(shape) * len(who) * (1 + own.rounds) for shape, who, own in work)

    def timed(shape: Shape, who: Sequence[Contender], own: Plan) -> Measurement:
        return measure(shape, who, own, on_progress=_told(shape, total, on_progress))

    with torch_threads(threads):
        on_progress("measuring the memory bandwidth", 0.0)
        rates = bandwidth(elements=max(25_000_000, max(info.caches().values(), default=0)))
        main = tuple(timed(shape, contenders, plan) for shape in shapes)
        parts = [tuple(timed(shape, growers, short) for shape in part) for part in growing or ()]
        found = info.collect()
    return Speed(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=found["versions"],
        machine=found["machine"] | {"native_instruction_set": found["instruction_set"]},
        threads=threads,
        plan=plan,
        bandwidth_gb_per_second={name: tuple(own) for name, own in rates.items()},
        reference=REFERENCE.name,
        contenders={contender.name: _described(contender) for contender in contenders},
        shapes=main,
        growth=Growth(*parts) if parts else None,
    )


def within_memory(plan: Plan) -> Plan:
    """Limit a plan to half of the machine's memory, where that can be known."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return plan
    return replace(plan, memory=min(plan.memory, physical / 2))


def _described(contender: Contender) -> Timed:
    return Timed(
        options=_results.to_json(contender.options),
        clip_grad_norm=contender.clip,
        native_hidden=contender.portable,
        streams=contender.streams._asdict(),
    )


def _told(shape: Shape, total: float, on_progress: OnProgress) -> Progress:
    """Return what turns the parts done on a shape into a share of all the work."""

    def advance(doing: str, parts: int) -> None:
        on_progress(doing and f"{shape.name}: {doing}", parts * _cost(shape) / total)

    return advance


def _cost(shape: Shape) -> float:
    """Guess the seconds of one part."""
    return 0.1 + 6e-9 * shape.parameters + 1e-4 * len(shape.sizes)
