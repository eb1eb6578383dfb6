"""The terminal and the page say the same of a sweep, in every cell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_records import made_record

from hvadam_bench.analysis import statistics
from hvadam_bench.analysis.grouping import group
from hvadam_bench.publishing.cells import verdict_word
from hvadam_bench.publishing.report.tables import ablation, results
from hvadam_bench.publishing.sweeps import standings
from hvadam_bench.publishing.tables import Table
from hvadam_bench.running.config import RunConfig
from hvadam_bench.running.records import Store
from hvadam_bench.sweeping.ledger import Ledger
from hvadam_bench.sweeping.search import Entry, Study
from hvadam_bench.sweeping.study_results import StudyResults, read_study

# Of five seeds each: some ends that a binary rounding would show another way.
ENDS = {
    "adam": [90.05, 91.15, 92.25, 90.35, 91.45],
    "sgd": [89.0, 90.1, 91.2, 89.3, 90.4],  # always behind, by 1.05
    "hvadam": [92.0, 91.0, 93.0, 90.0, 92.0],
    "lion": [90.0, 91.0, 92.0, 90.0, 91.0],
}


def told(store: Store, contenders: dict[str, list[float]], seeds: int) -> StudyResults:
    study = Study("digits_mlp", [Entry(name) for name in contenders], trials=1, seeds=seeds)
    study = replace(study, reference=next(iter(contenders)))
    for arm in study.arms():
        for config in arm.judging(arm.trials[0].options):
            ends = contenders[config.contender]
            store.put(made_record(ends[config.seed], config=config))
    return read_study(study, Ledger(store))


def columns(table: Table, *heads: str) -> dict[str, list[str]]:
    places = [next(i for i, h in enumerate(table.heads) if h.startswith(head)) for head in heads]
    return {row[0].contender: [row[place].text for place in places] for row in table.cells}


@pytest.mark.parametrize("seeds", [1, 2, 3, 5])
def test_the_terminal_and_the_page_say_the_same(store: Store, seeds: int) -> None:
    reading = told(store, ENDS, seeds)
    [task] = group(store)
    heads = ("test accuracy, %", "against Adam", "n", "lr chosen")
    terminal, page = (columns(table, *heads) for table in (standings(reading), results(task)))
    assert terminal == page
    assert terminal["adam"][1] == "reference"
    if seeds < statistics.FEWEST_PAIRS:
        assert terminal["hvadam"][1].endswith(" too few seeds")
    if seeds == 1:
        assert terminal["adam"][0] == "90.05"
    if seeds == 5:
        assert terminal["sgd"][:2] == ["90.1 [89.0, 91.2]", "−1.1 [−1.1, −1.1] behind"]


def test_the_ablation_is_corrected_for_its_levels_on_both(store: Store) -> None:
    names: list[str] = ["hvadam0", "hvadam1", "hvadam2", "hvadam"]
    levels = dict(zip(names, ENDS.values(), strict=True))
    reading = told(store, levels, 5)
    [task] = group(store)
    page = ablation(task)
    assert page is not None
    heads = ("test accuracy, %", "against", "n")
    shown = columns(page, *heads)
    assert columns(standings(reading), *heads) == {
        name: [value, "reference" if name == "hvadam0" else against, n]
        for name, (value, against, n) in shown.items()
    }
    first, last = (task.contenders[name] for name in ("hvadam0", "hvadam"))
    assert task.against(last, first).comparisons == 3


def test_one_run_has_no_interval(store: Store) -> None:
    store.put(made_record(90.05, config=RunConfig("digits_mlp", "adam")))
    [task] = group(store)
    assert columns(results(task), "test accuracy, %") == {"adam": ["90.05"]}


@pytest.mark.parametrize(
    ("pairs", "word"),
    [
        ([(90.0, 80.0)] * 5, "ahead"),
        ([(80.0, 90.0)] * 5, "behind"),
        ([(80.0, 90.0), (90.0, 80.0)] * 3, "tie"),
        ([(90.0, 80.0)] * 3, "leans ahead"),
        ([(90.0, 80.0)] * 2, "too few seeds"),
        ([], "too few seeds"),
    ],
)
def test_one_word_for_a_comparison(pairs: list[tuple[float, float]], word: str) -> None:
    metric = statistics.Metric("accuracy", "max")
    assert verdict_word(statistics.compare_pairs(pairs, metric)) == word
