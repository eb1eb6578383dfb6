"""Each kind of measurement, as it is planned. A framework is loaded only where it is timed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hvadam_bench.studies._study import Place
from hvadam_bench.studies.speed.plan import Plan
from hvadam_bench.studies.speed.shapes import BY_PARAMETERS, BY_TENSORS


def measure(plan: Plan, place: Place) -> dict[str, Any]:
    """Time what is planned."""
    return {plan.what: _time(plan, plan.threads[0], place)}


def _time(plan: Plan, threads: int, place: Place) -> Any:
    match plan.what:
        case "speed":
            from hvadam_bench.studies.speed import steps
            from hvadam_bench.studies.speed.contenders import CONTENDERS, MANY

            who = CONTENDERS
            if plan.compile_many:
                who = [replace(one, compiled=one.compiled and MANY) for one in who]
            growing = (BY_PARAMETERS, BY_TENSORS) if plan.growth else None
            return steps.benchmark(
                *(plan.shapes, who, plan.budget),
                threads=threads,
                growing=growing,
                on_progress=place.on_progress,
            )
        case "speed-threads":
            from hvadam_bench.studies.speed import threads as several

            placed = next((shape for shape in plan.shapes if shape.name == "huge"), None)
            return several.benchmark(
                *(plan.shapes, plan.threads, plan.budget),
                placed=placed,
                on_progress=place.on_progress,
            )
        case "speed-jax":
            from hvadam_bench.studies.speed import jax_steps

            jax_steps.limit_threads(threads)
            return jax_steps.benchmark(
                plan.shapes, plan.budget, threads=threads, on_progress=place.on_progress
            )
        case "training":
            from hvadam_bench.studies.speed import training

            return training.benchmark(
                plan.budget.rounds,
                1 if plan.smoke else 3,
                threads=threads,
                on_progress=place.on_progress,
            )
        case _:
            from hvadam_bench.studies.speed import runner

            runs = runner.SHORT_RUNS if plan.smoke else runner.RUNS
            return runner.benchmark(runs, on_progress=place.on_progress)
