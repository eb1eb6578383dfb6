"""Each kind of measurement, as it is planned. A framework is loaded only where it is timed.

A result is plain JSON: what it was made with, and "shapes" (or "workloads") that were timed, each
with a row in "results" for every contender and number of threads. A row has the "seconds" and the
"reference_seconds" of a step in all rounds, and what else was found of the contender.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from hvadam import info
from hvadam_bench.running.machine import Company
from hvadam_bench.studies._results import to_json
from hvadam_bench.studies._study import Place
from hvadam_bench.studies.speed.plan import Plan

MODULES = {
    "speed": "steps",
    "growth": "steps",
    "speed-threads": "steps",
    "speed-jax": "jax_steps",
    "training": "training",
    "runner": "runner",
}


def measure(plan: Plan, place: Place) -> dict[str, Any]:
    """Time what is planned; return it as JSON holds it."""
    if plan.what == "speed-jax":
        limit_cores(plan.threads[0])
    timed = import_module(f"hvadam_bench.studies.speed.{MODULES[plan.what]}")
    from hvadam_bench.studies.speed.steps import torch_threads

    company = Company()
    with torch_threads(plan.threads[-1]):
        found = timed.benchmark(plan, place.on_progress)
        about = info.collect()
    instructions = {"native_instruction_set": about.get("instruction_set")}
    made = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": about["versions"] | found.pop("versions", {}),
        "machine": about["machine"] | instructions,
        "alone": company.is_absent(),
        "threads": plan.threads[0],
        "counts": plan.threads,
        "plan": {"rounds": plan.rounds, "group_seconds": plan.group_seconds},
    }
    return {plan.what: to_json(made | found)}


def limit_cores(count: int) -> None:
    """Leave this process so many cores: XLA asks for them once, when it is first used."""
    if hasattr(os, "sched_setaffinity"):  # not on macOS and Windows: XLA takes what it finds
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
