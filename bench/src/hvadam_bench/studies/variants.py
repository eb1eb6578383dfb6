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
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import ContenderRuns, TaskResults
from hvadam_bench.running.files import write_atomically
from hvadam_bench.running.records import Record, Store
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
        median, low, high: The median over seeds and its interval.
        level: Of the interval, corrected for as many variants as there are.
        p: How often differences as lopsided arise by chance.
        verdict: "tie" where the interval has no difference in it.
    """

    task: str
    variant: str
    measure: Measure
    n: int
    median: float
    low: float
    high: float
    level: float
    p: float
    verdict: statistics.Verdict


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
    exact = results.contenders[EXACT]
    others = [one for name, one in results.contenders.items() if name != EXACT]
    return [
        _difference(results.task, one, exact, statistics.Metric(measure, goal), len(others))
        for one in others
        for measure, goal in MEASURES
    ]


def _difference(
    task: str, one: ContenderRuns, exact: ContenderRuns, metric: statistics.Metric, variants: int
) -> Difference:
    ours, theirs = (_values(runs.judged, metric) for runs in (one, exact))
    pairs = [(ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]
    found = statistics.compare_pairs(pairs, metric, comparisons=variants)
    ends = (found.difference, found.interval.low, found.interval.high)
    median, low, high = map(math.exp, ends) if metric.name == "loss" else ends
    variant = one.judged[0].config.variant
    return Difference(
        *(task, variant, "loss" if metric.name == "loss" else "accuracy", found.n),
        *(median, low, high, found.interval.level, found.p, found.verdict),
    )


def _values(runs: list[Record], metric: statistics.Metric) -> dict[int, float]:
    """Return the value of each seed; of losses the logarithm, as their ratios are compared."""
    values = {run.config.seed: statistics.final(run, metric) for run in runs}
    return {s: math.log(v) for s, v in values.items()} if metric.name == "loss" else values


def _steps(one: ContenderRuns) -> int:
    return one.judged[0].curve[-1].step
