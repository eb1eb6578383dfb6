"""Step times that nobody measured, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Sequence

from hvadam_bench.studies._pairs import Skip
from hvadam_bench.studies.speed.results import Budget, Growth, Measurement, Speed, Timing
from hvadam_bench.studies.speed.shapes import Shape

TINY = Shape("tiny", "two tensors", ((30, 10), (7,)))


def made_timing(contender: str, seconds: float, shape: Shape, beside: float = 1.0) -> Timing:
    """Return a timing of so many seconds in each of three rounds, beside 1, 1/2 and 2 times one."""
    return Timing(
        contender=contender,
        parameters=shape.parameters,
        steps=1,
        seconds=(seconds, seconds, seconds),
        reference_steps=1,
        reference_seconds=(beside, beside / 2, beside * 2),
        state_bytes=12 * shape.parameters,
        temporary_bytes=36 * shape.parameters,
        moved_bytes=48.0,
        limit=12 / 7,
        kernels=("loop",),
    )


def made_measurement(
    shape: Shape, results: Sequence[Timing], skipped: Sequence[Skip] = ()
) -> Measurement:
    """Return timings on one shape."""
    return Measurement(
        name=shape.name,
        title=shape.title,
        tensors=len(shape.sizes),
        parameters=shape.parameters,
        results=tuple(results),
        skipped=tuple(skipped),
    )


def made_speed(
    shapes: Sequence[Measurement] = (), growth: Growth | None = None, cache_bytes: int = 0
) -> Speed:
    """Return a whole study, on a machine with one cache."""
    return Speed(
        date="2026-01-01T00:00:00+00:00",
        versions={},
        machine={"caches": {"L3": cache_bytes}},
        threads=1,
        plan=Budget(),
        bandwidth_gb_per_second={"copy": (9.0, 10.0), "scale in place": (20.0,)},
        reference="Adam fused",
        contenders={},
        shapes=tuple(shapes),
        growth=growth,
    )
