"""The speed study: a step on one thread, on several, in JAX and in training, and the runner.

A result is plain JSON: what it was made with, and "shapes" (or "workloads") that were timed, each
with a row in "results" for every contender and number of threads. A row has the "seconds" and the
"reference_seconds" of a step in all rounds, and what else was found of the contender.
"""

import os
from datetime import UTC, datetime
from pkgutil import resolve_name
from typing import Any

from hvadam import info
from hvadam_bench.studies._results import to_json
from hvadam_bench.studies._study import Place, Study
from hvadam_bench.studies.speed import page, plan

# What times each kind, which loads a framework, so only then.
KINDS = {
    **dict.fromkeys(("speed", "growth", "speed-threads"), "steps:benchmark"),
    "speed-jax": "jax_steps:benchmark",
    "training": "training:benchmark",
    "runner": "training:benchmark_runner",
}


def measure(planned: plan.Plan, place: Place) -> dict[str, Any]:
    """Time what is planned; return it as JSON holds it."""
    if planned.what == "speed-jax":
        limit_cores(planned.threads[0])
    benchmark = resolve_name(f"{__name__}.{KINDS[planned.what]}")
    from hvadam_bench.running.machine import Company
    from hvadam_bench.studies.speed.steps import torch_threads

    company = Company()
    with torch_threads(planned.threads[-1]):
        found = benchmark(planned, place.on_progress)
        about = info.collect()
    instructions = {"native_instruction_set": about.get("instruction_set")}
    made = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": about["versions"] | found.pop("versions", {}),
        "machine": about["machine"] | instructions,
        "alone": company.is_absent(),
        "threads": planned.threads[0],
        "counts": planned.threads,
        "plan": {"rounds": planned.rounds, "group_seconds": planned.group_seconds},
    }
    return {planned.what: to_json(made | found)}


def limit_cores(count: int) -> None:
    """Leave this process so many cores: XLA asks for them once, when it is first used."""
    if hasattr(os, "sched_setaffinity"):  # not on macOS and Windows: XLA takes what it finds
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


STUDY = Study(
    "speed",
    "Time a step of HVAdam versus Adam and AdaBelief, print tables, draw charts.",
    plan.plan,
    measure,
    page.render,
    dict.fromkeys(KINDS, dict),
    page.tabulate,
)
