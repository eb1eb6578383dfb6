"""What low-bit state and the late step cost in training quality: paired runs on the digits.

    hvadam variants

trains a perceptron and a CNN with each variant and with the exact float32 one, from the same
weights on the same batches. All are measured on the test set, under the late step with what is
pending done.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from hvadam_bench.analysis import effects, judging, statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.running.files import write_atomically
from hvadam_bench.running.records import Store
from hvadam_bench.studies import json_form
from hvadam_bench.sweeping import recipes
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.recipes.variants import LR
from hvadam_bench.sweeping.study_results import read_study
from hvadam_bench.sweeping.sweep import Sweep

RECIPE = "variants"
EXACT = "hvadam"
Measure = Literal["loss", "accuracy"]
MEASURES: tuple[tuple[Measure, Literal["min", "max"]], ...] = (("loss", "min"), ("accuracy", "max"))


@dataclass(frozen=True)
class Difference:
    """A variant beside the exact one, seed by seed, in one measure of the test set.

    Attributes:
        task: Which.
        variant: Which, such as "int8 state".
        measure: "loss": the ratio of both. "accuracy": the difference in percentage points.
        n: Pairs of runs.
        mean, low, high: The mean over seeds, of ratios the geometric one, and its 95% interval.
        p: Of the sign-flip test, after Holm's correction for the variants of a task.
        verdict: Of `effects.judge`.
    """

    task: str
    variant: str
    measure: Measure
    n: int
    mean: float
    low: float
    high: float
    p: float
    verdict: effects.Verdict


@dataclass(frozen=True)
class Variants:
    """All differences, and what they were measured with."""

    versions: Mapping[str, str]
    lr: float
    steps: Mapping[str, int]  # by task
    values: Mapping[str, Mapping[str, Mapping[Measure, tuple[float, ...]]]]  # by task, contender
    differences: tuple[Difference, ...]

    def save(self, path: Path) -> None:
        """Write the JSON form."""
        text = json.dumps(json_form.to_json(self), indent=1, allow_nan=False)
        write_atomically(path, f"{text}\n".encode())

    @classmethod
    def load(cls, path: Path) -> Variants:
        """Read the JSON form."""
        return json_form.from_json(cls, json.loads(path.read_text(encoding="utf-8")))


def store_of(folder: Path, results: Path) -> Store:
    """Return where the study's records are: in a folder to work in, and packed."""
    return Store(folder / RECIPE, results / RECIPE)


def plan(store: Store) -> list[Sweep]:
    """Return the sweeps of the study, a task each."""
    return [Sweep([study], store, RECIPE) for study in recipes.get(RECIPE).studies]


def compare(store: Store) -> Variants:
    """Return what the records of a store say of the variants.

    Raises:
        ValueError: runs are missing.
    """
    ledger = Ledger(store)
    found: list[TaskResults] = []
    for study in recipes.get(RECIPE).studies:
        reading = read_study(study, ledger)
        if not reading.finished or reading.results is None:
            raise ValueError(f"variants: {study.task} is not finished; run `hvadam variants`.")
        found.append(reading.results)
    runs = [run for results in found for run in results.contenders[EXACT].judged]
    versions = runs[0].environment.get("versions", {})
    return Variants(
        versions={name: versions[name] for name in ("hvadam", "torch") if name in versions},
        lr=LR,
        steps={results.task: _steps(results.contenders[EXACT]) for results in found},
        values={
            results.task: {
                name: {
                    measure: tuple(r.test[measure] for r in one.judged) for measure, _ in MEASURES
                }
                for name, one in results.contenders.items()
            }
            for results in found
        },
        differences=tuple(d for results in found for d in _differences(results)),
    )


def _differences(results: TaskResults) -> list[Difference]:
    found = {
        measure: _judge(results, statistics.Metric(measure, goal)) for measure, goal in MEASURES
    }
    return [
        _difference(results.task, one, measure, found[measure][name])
        for name, one in results.contenders.items()
        if name != EXACT
        for measure, _ in MEASURES
    ]


def _judge(results: TaskResults, metric: statistics.Metric) -> dict[str, effects.Judgement]:
    return judging.judge_against(replace(results, metric=metric), EXACT)


def _difference(
    task: str, one: ContenderRuns, measure: Measure, found: effects.Judgement
) -> Difference:
    effect = found.effect
    ends = (effect.estimate, effect.interval.low, effect.interval.high)
    if measure == "loss":  # ours over theirs, so that more is worse
        mean, high, low = (math.exp(-end) for end in ends)
    else:
        mean, low, high = ends
    variant = one.judged[0].config.variant
    return Difference(task, variant, measure, effect.n, mean, low, high, found.p, found.verdict)


def _steps(one: ContenderRuns) -> int:
    return one.judged[0].curve[-1].step
