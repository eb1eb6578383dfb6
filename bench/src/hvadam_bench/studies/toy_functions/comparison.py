"""The study: every contender on every function, and f2 as its valley turns."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from hvadam._version import __version__
from hvadam_bench.contenders import names
from hvadam_bench.studies._study import OnProgress, ignore_progress
from hvadam_bench.studies.toy_functions import angle
from hvadam_bench.studies.toy_functions.functions import Problem
from hvadam_bench.studies.toy_functions.heats import LATE, Heat, run_heats
from hvadam_bench.studies.toy_functions.race import COMMON_LR, LAST, TARGET
from hvadam_bench.studies.toy_functions.result import Comparison
from hvadam_bench.studies.toy_functions.starts import ACROSS, ALONG, SAMPLE, TUNING
from hvadam_bench.studies.toy_functions.summary import summarize

MANY_DIMENSIONS = 10  # of the angle study beside the plane, when everyone runs


def compare(
    problems: Sequence[Problem],
    contenders: Sequence[str],
    steps: int,
    folder: Path,
    on_progress: OnProgress = ignore_progress,
) -> Comparison:
    """Run what is not yet in a folder, and return what all runs say.

    Args:
        problems: To race on, all of one dimension. With f2 at its own angle comes the angle study.
        contenders: Who races; if it is everyone, the angle study is made in ten dimensions too.
        steps: The budget.
        folder: Where every run is kept.
        on_progress: Told of each heat that is done.
    """
    ordered = [name for name in names() if name in contenders]
    heats = [
        Heat(problem, name, "grid", steps, LATE * steps) for problem in problems for name in ordered
    ]
    dimensions = {p.dimension for p in problems if p == Problem.of("f2", None, p.dimension)}
    if dimensions and ordered == names():
        dimensions.add(MANY_DIMENSIONS)
    turning = {n: angle.plan(ordered, n, steps) for n in sorted(dimensions)}
    everything = heats + [heat for plan in turning.values() for heat in plan]
    found = {}
    for heat, results in run_heats(everything, folder):
        found[heat] = results
        on_progress(f"{heat.contender} on {heat.problem.label}", 1 / len(everything))
    return Comparison(
        versions={
            "hvadam": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "machine": platform.machine(),
        },
        steps=steps,
        horizon=LATE * steps,
        target=TARGET,
        last=LAST,
        common_lr=COMMON_LR,
        grid=(ACROSS, ALONG),
        sample=SAMPLE,
        tuning_starts=TUNING,
        functions={
            problem.label: summarize([found[heat][0] for heat in heats if heat.problem == problem])
            for problem in problems
        },
        angle={
            str(n): angle.summarize([result for heat in plan for result in found[heat]])
            for n, plan in turning.items()
        },
    )
